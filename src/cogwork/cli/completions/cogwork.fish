# fish completion for cogwork, cogwork-server, cogwork-agent and cogwork-cloud
function __cogwork_complete
    set -l current (commandline --current-token --cut-at-cursor)
    # An empty word is a word.
    test (count $current) -eq 0; and set current ""
    set -l words (commandline --tokenize --cut-at-cursor --current-process) $current
    set -l candidates (cogwork completion fish --words $words 2>/dev/null)
    switch "$candidates[1]"
        case :files
            __fish_complete_path $current
        case :directories
            __fish_complete_directories $current
        case '*'
            printf '%s\n' $candidates
    end
end
for program in cogwork cogwork-server cogwork-agent cogwork-cloud
    complete --command $program --no-files --keep-order --arguments '(__cogwork_complete)'
end
