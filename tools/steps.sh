# For scripts of several steps: each has a heading, its time, and an advice when it fails; all run, then a summary.
# shellcheck shell=bash
failed=()

# step TITLE ADVICE COMMAND...
step() {
    local title=$1 advice=$2 begin=$SECONDS
    shift 2
    printf '\n== %s\n' "$title"
    if "$@"; then
        printf '   ok, %s s\n' $((SECONDS - begin))
    else
        printf '   FAILED after %s s: %s\n' $((SECONDS - begin)) "$advice"
        failed+=("$title")
    fi
}

summary() {
    local title
    printf '\n'
    for title in "${failed[@]}"; do
        printf 'FAILED: %s\n' "$title"
    done
    [ "${#failed[@]}" = 0 ]
}
