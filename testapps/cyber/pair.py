#!/usr/bin/env python3
"""A writer and a reader of Cyber RT in one process, by the Python binding of the real library.

    pair.py [--messages N | --forever] [--size BYTES] [--wait]

Each message has BYTES (307,240) bytes as it is sent. At byte 307,200 it carries the time at which it was
written, as ASCII nanoseconds of the wall clock, 19 digits and a blank. With --wait it says `ready PID`
when everything is connected and begins when a line comes on stdin. The next message is written when
the last one has arrived. With --forever they are written until a line comes on stdin. Last line: written=N received=N.
"""
import argparse
import ctypes
import os
import shutil
import sys
import tempfile
import threading
import time

STAMP = 307200


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--size", type=int, default=STAMP + 40)
    parser.add_argument("--forever", action="store_true")
    parser.add_argument("--wait", action="store_true")
    options = parser.parse_args()

    # Yama's ptrace_scope 1 lets only a parent attach: PR_SET_PTRACER, PR_SET_PTRACER_ANY.
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)

    # Where the library writes its log.
    log = os.environ["GLOG_log_dir"] = tempfile.mkdtemp(prefix="trapline-cyber-")
    from pycyber import cyber

    from pycyber.proto.unit_test_pb2 import ChatterBenchmark

    def message(stamp, size):
        """A message of `size` bytes on the wire; in front of its text is a header of 4 bytes."""
        text = "x" * (STAMP - 4) + stamp
        text = text.ljust(size - 4, "y")[: size - 4]
        return ChatterBenchmark(content=text)

    class Name(type):
        def __str__(self):
            return "apollo.cyber.message.RawMessage"

    class Raw(metaclass=Name):
        """Bytes as they came: the reader gets the library's own RawMessage."""

        def ParseFromString(self, data):
            self.data = data

    arrived = threading.Condition()
    received = 0
    last = b""

    def on_message(raw):
        nonlocal received, last
        with arrived:
            received += 1
            last = raw.data
            arrived.notify()

    cyber.init("trapline")
    node = cyber.Node("pair")
    reader = node.create_reader("trapline/messages", Raw, on_message)
    writer = node.create_writer("trapline/messages", ChatterBenchmark, 8)

    def send(one, patience):
        """Writes and waits for exactly this one: what was written before it has come before it."""
        writer.write(one)
        wire = one.SerializeToString()
        with arrived:
            return arrived.wait_for(lambda: last == wire, patience)

    # The two have found each other when a message arrives.
    deadline = time.monotonic() + 30
    tries = 0
    while not send(ChatterBenchmark(content="hello %d" % tries), 0.2):
        tries += 1
        if time.monotonic() > deadline:
            sys.exit("the reader did not find the writer")
    received = 0
    print("ready", os.getpid(), flush=True)
    if options.wait:
        sys.stdin.readline()

    stopped = threading.Event()
    if options.forever:
        threading.Thread(target=lambda: (sys.stdin.readline(), stopped.set()), daemon=True).start()
    written = 0
    while not stopped.is_set() and (options.forever or written < options.messages):
        written += 1
        if not send(message("%019d " % time.time_ns(), options.size), 30):
            break
    print(f"written={written} received={received}", flush=True)
    shutil.rmtree(log, ignore_errors=True)
    del reader
    # The library's own threads do not always end with the interpreter.
    os._exit(0 if received == (written if options.forever else options.messages) else 1)


main()
