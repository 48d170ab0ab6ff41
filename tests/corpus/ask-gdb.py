# Run inside gdb: runs the commands of CORPUS and writes what gdb printed, and the state of the
# program before the first of them, to OUT.
import json
import os

import gdb

corpus, out = os.environ["CORPUS"], os.environ["OUT"]

GENERAL = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
    "fs_base gs_base ds es fs gs"
).split()
SMALL = "fctrl fstat ftag fiseg fioff foseg fooff fop mxcsr".split()


def number(text):
    return int(gdb.parse_and_eval(text)) & (1 << 64) - 1


def raw(register, member, size):
    text = gdb.execute("output/x $%s%s" % (register, member), to_string=True)
    if text == "void":
        return None
    parts = [int(part, 16) for part in text.strip("{}").split(", ")]
    each = size // len(parts)
    return "".join(part.to_bytes(each, "little").hex() for part in parts)


def whole_array(register, count):
    # Equal neighbours would be shown as one.
    gdb.execute("set print repeats unlimited")
    return raw(register, ".v%d_int64" % count, 8 * count)


def state():
    if not gdb.selected_inferior().pid:
        return None
    registers = [number("$" + n if n != "eflags" else "(int)$eflags") for n in GENERAL]
    vectors = {}
    for i in range(16):
        vectors["xmm%d" % i] = whole_array("xmm%d" % i, 2)
    if gdb.execute("output $ymm0", to_string=True) != "void":
        for i in range(16):
            vectors["ymm%d" % i] = whole_array("ymm%d" % i, 4)
    for i in range(8):
        vectors["st%d" % i] = raw("st%d" % i, "", 10)
        vectors["k%d" % i] = raw("k%d" % i, "", 8)
    for name in SMALL:
        vectors[name] = raw(name, "", 4)
    gdb.execute("set print repeats 10")
    memory = []
    for line in open("/proc/%d/maps" % gdb.selected_inferior().pid):
        span, mode = line.split()[:2]
        first, last = (int(n, 16) for n in span.split("-"))
        if "r" not in mode or "[v" in line:
            continue
        try:
            content = bytes(gdb.selected_inferior().read_memory(first, last - first))
        except gdb.MemoryError:
            continue
        with open(out + ".%x" % first, "wb") as file:
            file.write(content)
        memory.append(first)
    return {"registers": registers, "vectors": vectors, "memory": memory}


answers = []
before = state()
base = number("(long)&main")
for line in open(corpus):
    line = line.strip().removeprefix("? ")
    if not line.startswith(("print", "whatis")):
        continue
    try:
        text = gdb.execute(line, to_string=True)
    except gdb.error as error:
        text = str(error) + "\n"
    except gdb.MemoryError as error:
        text = str(error) + "\n"
    answers.append([line, text])
json.dump({"state": before, "main": base, "answers": answers}, open(out, "w"))
