# bash completion for cogwork, cogwork-server, cogwork-agent and cogwork-cloud
_cogwork_trim_colons() {
    # Words are split at ":", too, so what is before the last ":" stays on the line.
    local word=${COMP_LINE:0:COMP_POINT}
    word=${word##*[[:space:]=]}
    [[ $COMP_WORDBREAKS == *:* && $word == *:* ]] || return
    COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
}
_cogwork() {
    local IFS=$'\n' current=${COMP_WORDS[COMP_CWORD]}
    # Words are split at "=", too.
    [[ $current == "=" ]] && current=""
    COMPREPLY=($(cogwork completion bash --words "${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
    case ${COMPREPLY[0]} in
        :files) COMPREPLY=($(compgen -f -- "$current")) ;;
        :directories) COMPREPLY=($(compgen -d -- "$current")) ;;
        *) _cogwork_trim_colons; return ;;
    esac
    # Quotes names and adds slashes; bash 3 does without.
    compopt -o filenames 2>/dev/null
}
complete -F _cogwork cogwork cogwork-server cogwork-agent cogwork-cloud
