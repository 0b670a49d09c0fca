# SPDX-License-Identifier: Apache-2.0
"""The program, as the command `normbench` of the wheel and as `python -m normbench`."""

import os
import sys

from ._program import Error, environment, program


def main():
    try:
        path = program()
    except Error as error:
        sys.exit(f"normbench: {error}")
    os.execve(path, ["normbench", *sys.argv[1:]], environment())


if __name__ == "__main__":
    main()
