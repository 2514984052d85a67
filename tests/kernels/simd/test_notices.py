"""Notices: one line on stderr, once, that never ends a search."""

import errno
import io
import os
import sys
import threading

import pytest

from treefield.kernels.simd.notices import Notice


def test_notice_is_given_once_with_the_name_of_the_package(capsys):
    notice = Notice()
    notice.give("compiling")
    notice.give("compiling again")
    assert notice.given
    assert capsys.readouterr() == ("", "treefield: compiling\n")


def test_notice_of_many_threads_is_given_once(capsys):
    notice, start = Notice(), threading.Barrier(8)

    def give():
        start.wait()
        notice.give("compiling")

    threads = [threading.Thread(target=give) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capsys.readouterr().err == "treefield: compiling\n"


class FullStream(io.StringIO):
    def flush(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("stream", ["missing", "closed", "full"])
def test_notice_survives_a_stderr_that_cannot_be_written(capsys, monkeypatch, stream):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", {"missing": None, "closed": closed, "full": FullStream()}[stream])
    Notice().give("something")
    assert capsys.readouterr().out == ""
