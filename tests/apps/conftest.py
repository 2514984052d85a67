"""Pictures for the tests of the applications."""

import pytest


@pytest.fixture(scope="session")
def camera():
    """A part of the photograph with fine and with smooth regions."""
    return pytest.importorskip("skimage.data").camera()[100:196, 190:286]
