# A function whose symbol has no size, and behind it one without any symbol.
        .text
unsized_one:
        .cfi_startproc
        nop
        ret
        .cfi_endproc

        .cfi_startproc
        nop
        nop
        ret
        .cfi_endproc

        .globl main
        .type main, @function
main:
        .cfi_startproc
        xor %eax, %eax
        ret
        .cfi_endproc
        .size main, .-main
        .section .note.GNU-stack, "", @progbits
