#compdef cogwork cogwork-server cogwork-agent cogwork-cloud
_cogwork() {
    local -a candidates
    candidates=("${(@f)$(cogwork completion zsh --words "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    # What follows "=" is completed by itself.
    [[ ${words[CURRENT]} == -*=* ]] && compset -P '*='
    case ${candidates[1]} in
        :files) _files ;;
        :directories) _files -/ ;;
        ?*) _describe -V cogwork candidates ;;
    esac
}
# Sourced by ~/.zshrc, or loaded from a directory of $fpath.
if [[ ${funcstack[1]} == _cogwork ]]; then
    _cogwork "$@"
else
    compdef _cogwork cogwork cogwork-server cogwork-agent cogwork-cloud
fi
