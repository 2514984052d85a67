"""Exit codes of the command."""

FAILED_ITEMS = 1  # some images of a batch
BAD_INPUT = 2
INTERRUPTED = 130  # as shells have it for Ctrl-C
BROKEN_PIPE = 141  # as shells have it for a command that SIGPIPE has ended
