#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs README, guide and the READMEs of configs below ROOT, behind all other files: a link to a file that is installed leads there, any other
# becomes the name of a file in the sources.
#   usage: documents.sh ROOT
set -eu
root=$1
install_document() { # FILE PLACE
    mkdir -p "$root/${2%/*}"
    awk -v own="$1" -v place="$2" -v root="$root" '
        function folder(path) { return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/) - 1) : "" }
        # Where the link of a file in this folder leads, from the top.
        function resolved(from, link) {
            while (sub(/^\.\.\//, "", link)) from = folder(from)
            sub(/^\.\//, "", link)
            return from == "" ? link : from "/" link
        }
        function installed(path) {
            if (sub(/^cmd\/guide\//, "share/doc/normbench/guide/", path)) return path
            if (path == "README.md") return "share/doc/normbench/" path
            if (path ~ /^kernels\/(kernel|function)\.h$/) return "include/normbench/" substr(path, 9)
            if (sub(/^reports\/schema\//, "share/normbench/schema/", path)) return path
            return sub(/^configs\//, "share/normbench/configs/", path) ? path : ""
        }
        function there(path) {
            if (path ~ /^share\/doc\/.*\.md$/ || path ~ /^share\/normbench\/configs\/(claims\/)?README\.md$/) return 1 # written here
            return path != "" && system("test -e \"" root "/" path "\"") == 0
        }
        function relative(from, to,   up) {
            while (from != "" && index(to, from "/") != 1) { from = folder(from); up = up "../" }
            return up (from == "" ? to : substr(to, length(from) + 2))
        }
        BEGIN { RS = "\001" } # a link may go over two lines: the whole page at once
        {
            line = ""
            while (match($0, /!?\[[^\]]*\]\([^)]*\)/)) {
                whole = substr($0, RSTART, RLENGTH)
                line = line substr($0, 1, RSTART - 1)
                $0 = substr($0, RSTART + RLENGTH)
                text = link = whole
                sub(/^!?\[/, "", text); sub(/\]\(.*/, "", text)
                sub(/.*\]\(/, "", link); sub(/\)$/, "", link)
                anchor = link; if (!sub(/^[^#]*/, "", anchor)) anchor = ""
                file = link; sub(/#.*/, "", file)
                target = file ~ /^([a-z]+:|$)/ ? "" : resolved(folder(own), file)
                path = installed(target)
                if (target == "") line = line whole
                else if (there(path)) line = line "[" text "](" relative(folder(place), path) anchor ")"
                else line = line text (whole ~ /^!/ ? "" : " (`" target "` in the sources)")
            }
            printf "%s", line $0
        }' "$1" >"$root/$2"
    chmod 644 "$root/$2"
}
for page in cmd/guide/*.md; do install_document "$page" "share/doc/normbench/guide/${page##*/}"; done
install_document README.md share/doc/normbench/README.md
for readme in configs/README.md configs/claims/README.md; do install_document "$readme" "share/normbench/$readme"; done
