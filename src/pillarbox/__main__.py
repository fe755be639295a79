"""`python -m pillarbox`, and the command `pillarbox`."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C while the program is loaded ends it without a word; `main` sets the handler again.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from pillarbox.cli import main

if __name__ == "__main__":
    main()
