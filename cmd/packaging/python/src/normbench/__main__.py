# SPDX-License-Identifier: Apache-2.0
"""The program, as the command `normbench` of the wheel and as `python -m normbench`."""

import os
import shutil
import sys

from ._program import Error, environment, program


def main():
    try:
        path = program()
    except Error as error:
        sys.exit(f"normbench: {error}")
    variables = environment()
    own = os.path.abspath(sys.argv[0])
    if os.path.basename(own) == "normbench":  # what it prints can then be typed
        found = shutil.which("normbench")
        variables["NORMBENCH_COMMAND"] = "normbench" if found and os.path.samefile(found, own) else own
    os.execve(path, ["normbench", *sys.argv[1:]], variables)


if __name__ == "__main__":
    main()
