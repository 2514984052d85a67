"""Settings shared by all tests."""

import signal

import hypothesis

# No deadline: the first example of a kind compiles its kernels. The same examples each time.
hypothesis.settings.register_profile("treefield", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("treefield")

# Shells start what runs in the background with Ctrl-C ignored; the tests of it need it.
signal.signal(signal.SIGINT, signal.default_int_handler)
