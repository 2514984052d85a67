"""How the tests of files look at errors."""

import pytest


def check_one_line_error(call, error, *words):
    """Return the error that the call raises, after checking that it is one line that holds the words."""
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    return caught.value
