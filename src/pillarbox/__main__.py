"""`python -m pillarbox`, and the command `pillarbox`."""

# The built-in part of `signal`: loading all of it takes a moment in which Ctrl-C would show a traceback.
import _signal  # type: ignore[import-not-found]

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    # Ctrl-C while the program is loaded ends it without a word; `main` sets the handler again.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from pillarbox.cli import main

if __name__ == "__main__":
    main()
