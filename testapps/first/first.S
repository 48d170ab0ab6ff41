// A function for every kind of first instruction. `f_NAME` can be probed at its entry; `r_NAME` begins with what cannot be
// moved. What the driver (first.c) sets up for each call: rax, rdx, rbp, r10 to r15 are numbers that differ from call to
// call, rbx, rsi and rdi lead into two buffers (the second has the address of `landing` at 0x100),
// rcx is 0 to 6, r8 the address of `landing`, r9 a stack selector, flags all kinds. All registers, flags and buffers
// are compared afterwards.

#include "flags.h"

    .macro ENTRY name, flags, enter
    .pushsection first_table, "aw", @progbits
    .quad \name, \enter, 1f, \flags
    .popsection
    .pushsection .rodata
1:  .asciz "\name"
    .popsection
    .endm

    // Opens the function f_NAME (or r_NAME); calls enter it at \enter.
    .macro OPEN name, flags, enter
    ENTRY \name, \flags, \enter
    .globl \name
    .type \name, @function
    .p2align 4, 0xcc
\name:
    .endm
    .macro F name, flags=0
    OPEN f_\name, \flags, f_\name
    .endm
    // The same, entered by the code that follows `STUB`, which ends in a jump to it.
    .macro FVIA name, flags=0
    OPEN f_\name, \flags, enter_\name
    .endm
    .macro R name, flags=0
    OPEN r_\name, (\flags) | REFUSED, r_\name
    .endm
    .macro E name
    .size \name, . - \name
    .endm
    .macro FRET name
    ret
    E f_\name
    .endm

    .macro DATA name, value:vararg
    .pushsection .data
    .p2align 6
d_\name:
    .quad \value
    .popsection
    .endm

    .data
    .p2align 6
    .globl d_start
d_start:

    .text
    .globl landing
    .type landing, @function
landing:
    lea 0x77(%rax,%rcx), %rax
    ret
    .size landing, . - landing
    .globl just_return
    .type just_return, @function
just_return:
    ret
    .size just_return, . - just_return

// ---- relative to rip
    DATA number, 0x1122334455667788, 0x99aabbccddeeff00, 3, 4, 5, 6, 7, 8
    DATA code, landing
    F rip_load8
    mov d_number(%rip), %rax
    FRET rip_load8
    F rip_load4
    mov d_number+4(%rip), %eax
    FRET rip_load4
    F rip_load2
    mov d_number+2(%rip), %ax
    FRET rip_load2
    F rip_load1
    mov d_number+1(%rip), %al
    FRET rip_load1
    F rip_load_high
    mov d_number+1(%rip), %ah
    FRET rip_load_high
    F rip_movzx
    movzbl d_number(%rip), %r12d
    FRET rip_movzx
    F rip_movsx
    movsbq d_number(%rip), %r13
    FRET rip_movsx
    F rip_movsxd
    movslq d_number+8(%rip), %r13
    FRET rip_movsxd
    DATA store1, 0
    F rip_store_imm1
    movb $0x5a, d_store1+3(%rip)
    FRET rip_store_imm1
    DATA store2, 0
    F rip_store_imm2
    movw $0x5a5b, d_store2+2(%rip)
    FRET rip_store_imm2
    DATA store4, 0
    F rip_store_imm4
    movl $0x5a5b5c5d, d_store4(%rip)
    FRET rip_store_imm4
    DATA store8, 0
    F rip_store_imm8
    movq $-0x5a5b5c5d, d_store8(%rip)
    FRET rip_store_imm8
    DATA store_reg, 0
    F rip_store_reg
    mov %r9, d_store_reg(%rip)
    FRET rip_store_reg
    F rip_lea
    lea d_number(%rip), %r11
    FRET rip_lea
    F rip_lea32
    lea d_number(%rip), %r11d
    mov $0, %r11d
    FRET rip_lea32
    F rip_cmp_imm8
    cmpl $0x55, d_number(%rip)
    FRET rip_cmp_imm8
    F rip_cmp_imm4
    cmpq $0x55667788, d_number(%rip)
    FRET rip_cmp_imm4
    F rip_cmp_reg
    cmp %rax, d_number(%rip)
    FRET rip_cmp_reg
    F rip_test_imm
    testb $0x88, d_number(%rip)
    FRET rip_test_imm
    F rip_add_to_reg
    add d_number(%rip), %rdx
    FRET rip_add_to_reg
    F rip_adc_to_reg
    adc d_number(%rip), %rdx
    FRET rip_adc_to_reg
    F rip_imul_imm
    imul $1000, d_number(%rip), %rbp
    FRET rip_imul_imm
    F rip_bt
    btq $7, d_number(%rip)
    FRET rip_bt
    F rip_cmov
    cmovc d_number(%rip), %rax
    FRET rip_cmov
    DATA inc, 0
    F rip_lock_inc, RACES
    lock incl d_inc(%rip)
    FRET rip_lock_inc
    DATA xadd, 0
    F rip_lock_xadd, RACES
    lock xadd %r9, d_xadd(%rip)
    FRET rip_lock_xadd
    DATA xchg, 0x2b
    F rip_xchg
    xchg %r9, d_xchg(%rip)
    FRET rip_xchg
    DATA pair, 7, 9
enter_rip_cmpxchg16b:
    mov $7, %eax
    mov $9, %edx
    mov $7, %ebx
    mov $9, %ecx
    jmp f_rip_cmpxchg16b
    FVIA rip_cmpxchg16b
    lock cmpxchg16b d_pair(%rip)
    FRET rip_cmpxchg16b
    DATA pair8, 0x900000007
enter_rip_cmpxchg8b:
    mov $7, %eax
    mov $9, %edx
    mov $7, %ebx
    mov $9, %ecx
    jmp f_rip_cmpxchg8b
    FVIA rip_cmpxchg8b
    cmpxchg8b d_pair8(%rip)
    FRET rip_cmpxchg8b
    F rip_push
    push d_number(%rip)
    pop %rax
    FRET rip_push
    DATA popped, 0
enter_rip_pop:
    push $0x1234
    jmp f_rip_pop
    FVIA rip_pop
    pop d_popped(%rip)
    FRET rip_pop
    F rip_call
    call *d_code(%rip)
    add $1, %rax
    FRET rip_call
    F rip_jmp
    jmp *d_code(%rip)
    E f_rip_jmp
    F rip_notrack_jmp
    notrack jmp *d_code(%rip)
    E f_rip_notrack_jmp
    F rip_nop
    nopw d_number(%rip)
    FRET rip_nop
    F rip_prefetch
    prefetcht0 d_number(%rip)
    FRET rip_prefetch
    F rip_clflush
    clflush d_number(%rip)
    FRET rip_clflush
    F rip_movups
    movups d_number(%rip), %xmm3
    movq %xmm3, %rax
    FRET rip_movups
    F rip_movaps_high
    movaps d_number(%rip), %xmm13
    movq %xmm13, %rax
    FRET rip_movaps_high
    DATA movups, 0, 0
    F rip_movups_store
    movups %xmm15, d_movups(%rip)
    FRET rip_movups_store
    F rip_pshufd
    pshufd $0x1b, d_number(%rip), %xmm1
    movq %xmm1, %rax
    FRET rip_pshufd
    F rip_cvtsi2sd
    cvtsi2sdq d_number(%rip), %xmm1
    movq %xmm1, %rax
    FRET rip_cvtsi2sd
    F rip_pinsrd
    pxor %xmm1, %xmm1
    pinsrw $1, d_number(%rip), %xmm1
    movq %xmm1, %rax
    FRET rip_pinsrd
    DATA control, 0x37f
    DATA mxcsr, 0x1f80
    F rip_fldcw
    fldcw d_control(%rip)
    FRET rip_fldcw
    F rip_ldmxcsr
    ldmxcsr d_mxcsr(%rip)
    FRET rip_ldmxcsr
    F rip_fild
    fildll d_number(%rip)
    fistpll (%rsi)
    FRET rip_fild
    F rip_crc32
    crc32q d_number(%rip), %rdx
    FRET rip_crc32
    F rip_movbe, NEEDS_MOVBE
    movbe d_number(%rip), %rdx
    FRET rip_movbe
    F rip_fs
    mov %fs:t_word@tpoff, %rax
    FRET rip_fs

// ---- VEX and EVEX
    F vex_load, NEEDS_AVX2
    vmovdqu d_number(%rip), %ymm1
    vmovq %xmm1, %rax
    vzeroupper
    FRET vex_load
    DATA vex, 0, 0, 0, 0
    F vex_store, NEEDS_AVX2
    vmovdqu %ymm15, d_vex(%rip)
    vzeroupper
    FRET vex_store
    F vex_insert_imm, NEEDS_AVX2
    vinsertf128 $1, d_number(%rip), %ymm1, %ymm2
    vextractf128 $1, %ymm2, %xmm2
    vmovq %xmm2, %rax
    vzeroupper
    FRET vex_insert_imm
    F vex_pshufd_imm, NEEDS_AVX2
    vpshufd $0x1b, d_number(%rip), %xmm9
    vmovq %xmm9, %rax
    FRET vex_pshufd_imm
    F vex_broadcast, NEEDS_AVX2
    vbroadcastss d_number+4(%rip), %ymm9
    vmovq %xmm9, %rax
    vzeroupper
    FRET vex_broadcast
    F vex_blend4, NEEDS_AVX2
    vblendvps %xmm0, d_number(%rip), %xmm1, %xmm2
    FRET vex_blend4
    F vex_rorx, NEEDS_AVX2
    rorx $13, d_number(%rip), %rax
    FRET vex_rorx
    F vex_andn, NEEDS_AVX2
    andn d_number(%rip), %rdx, %rax
    FRET vex_andn
    F vex_gather, NEEDS_AVX2
    vpcmpeqd %ymm2, %ymm2, %ymm2
    vpxor %ymm1, %ymm1, %ymm1
    vpgatherdd %ymm2, (%rsi,%ymm1,4), %ymm3
    vmovq %xmm3, %rax
    vzeroupper
    FRET vex_gather
    F vex_zeroupper, NEEDS_AVX2
    vzeroupper
    FRET vex_zeroupper
    F evex_load, NEEDS_AVX512
    vmovdqu64 d_number(%rip), %zmm17
    vpextrq $1, %xmm1, %rdx
    vmovdqa64 %zmm17, %zmm1
    vmovq %xmm1, %rax
    vzeroupper
    FRET evex_load
    DATA evex, 0, 0, 0, 0, 0, 0, 0, 0
    F evex_store, NEEDS_AVX512
    vmovdqu64 %zmm31, d_evex(%rip)
    FRET evex_store
    F evex_broadcast_imm, NEEDS_AVX512
    vpternlogd $0x96, d_number(%rip){1to16}, %zmm2, %zmm3
    vzeroupper
    FRET evex_broadcast_imm
    F evex_disp8, NEEDS_AVX512
    vmovdqu64 64(%rsi), %zmm1
    vmovq %xmm1, %rax
    vzeroupper
    FRET evex_disp8
    F evex_mask, NEEDS_AVX512
    kmovw d_number(%rip), %k1
    kmovw %k1, %eax
    FRET evex_mask

// ---- calls
    F call_near
    call landing
    FRET call_near
    F call_next
    call 2f
2:  pop %rax
    FRET call_next
    F call_reg
    call *%r8
    FRET call_reg
    F call_mem
    call *0x100(%rdi)
    FRET call_mem
enter_call_sib:
    mov $1, %ecx
    jmp f_call_sib
    FVIA call_sib
    call *0xf8(%rdi,%rcx,8)
    FRET call_sib
enter_call_rsp:
    push %r8
    call f_call_rsp
    lea 8(%rsp), %rsp
    ret
    FVIA call_rsp
    call *8(%rsp)
    FRET call_rsp
    F call_addr32
    .byte 0x67
    call landing
    FRET call_addr32
    F call_data16_rexw
    .byte 0x66, 0x48
    call landing
    FRET call_data16_rexw
    F call_notrack
    notrack call *%r8
    FRET call_notrack
    F call_bnd
    bnd call landing
    FRET call_bnd
    F call_null, FAULTS
    call *0
    FRET call_null
enter_call_unmapped:
    mov $0x1000, %eax
    jmp f_call_unmapped
    FVIA call_unmapped, FAULTS
    call *%rax
    FRET call_unmapped

// ---- jumps
    F jmp_short
    jmp 2f
    ud2
2:  mov $1, %eax
    FRET jmp_short
    F jmp_near
    .byte 0xe9
    .long 2f - . - 4
    ud2
2:  mov $1, %eax
    FRET jmp_near
3:  mov $2, %eax
    ret
    F jmp_back
    jmp 3b
    E f_jmp_back
    F jmp_bnd
    bnd jmp landing
    E f_jmp_bnd
    F jmp_reg
    jmp *%r8
    E f_jmp_reg
    F jmp_mem
    jmp *0x100(%rdi)
    E f_jmp_mem
enter_jmp_sib:
    mov $1, %ecx
    jmp f_jmp_sib
    FVIA jmp_sib
    jmp *0xf8(%rdi,%rcx,8)
    E f_jmp_sib
    F jmp_notrack
    notrack jmp *%r8
    E f_jmp_notrack
    F jmp_null, FAULTS
    jmp *0
    E f_jmp_null
enter_jmp_noncanonical:
    movabs $0x8000000000000000, %rax
    jmp f_jmp_noncanonical
    FVIA jmp_noncanonical, FAULTS
    jmp *%rax
    E f_jmp_noncanonical

    .macro JCC cond
    F j\cond\()_short
    j\cond 2f
    add $1, %r10d
2:  FRET j\cond\()_short
    F j\cond\()_near
    .byte 0x0f
    .byte JCC_OPCODE
    .long 2f - . - 4
    add $1, %r10d
2:  FRET j\cond\()_near
    JCC_OPCODE = JCC_OPCODE + 1
    .endm
    JCC_OPCODE = 0x80
    .irp cond, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
    JCC \cond
    .endr
    F jcc_taken_hint
    .byte 0x3e
    jne 2f
    add $1, %r10d
2:  FRET jcc_taken_hint
    F jcc_bnd
    bnd jne 2f
    add $1, %r10d
2:  FRET jcc_bnd
    .irp kind, loop, loope, loopne, jrcxz, jecxz
    F \kind
    \kind 2f
    add $1, %r10d
2:  FRET \kind
    .endr
    F loop_addr32
    .byte 0x67
    loop 2f
    add $1, %r10d
2:  FRET loop_addr32
enter_loop_self:
    add $1, %rcx
    jmp f_loop_self
    FVIA loop_self, ITERATES
    loop f_loop_self
    FRET loop_self

// ---- returns, and the stack
    F ret
    ret
    E f_ret
    F ret_imm
    ret $16
    E f_ret_imm
    F ret_bnd
    bnd ret
    E f_ret_bnd
    F ret_repz
    repz ret
    E f_ret_repz
    F ret_rexw
    rex.W ret
    E f_ret_rexw
enter_lretq:
    mov %cs, %eax
    push %rax
    lea just_return(%rip), %rax
    push %rax
    jmp f_lretq
    FVIA lretq
    lretq
    E f_lretq
enter_iretq:
    mov %rsp, %r10
    mov %ss, %eax
    push %rax
    push %r10
    pushf
    mov %cs, %eax
    push %rax
    lea just_return(%rip), %rax
    push %rax
    jmp f_iretq
    FVIA iretq
    iretq
    E f_iretq
    .irp reg, rax, rbp, rbx, r12, rsp
    F push_\reg
    push %\reg
    pop %r11
    FRET push_\reg
    .endr
    F push_imm8
    push $-3
    pop %rax
    FRET push_imm8
    F push_imm32
    push $0x12345678
    pop %rax
    FRET push_imm32
    F push_mem
    push 16(%rsi)
    pop %rax
    FRET push_mem
    F push_fs
    push %fs
    pop %rax
    FRET push_fs
    F push_word
    pushw $0x1234
    popw %ax
    FRET push_word
    F pop_reg
    pop %r11
    push %r11
    FRET pop_reg
enter_pop_mem:
    push $0x4321
    jmp f_pop_mem
    FVIA pop_mem
    pop 24(%rdi)
    FRET pop_mem
enter_pop_rsp:
    push %rsp
    jmp f_pop_rsp
    FVIA pop_rsp
    pop %rsp
    FRET pop_rsp
    F pushf
    pushf
    pop %rax
    FRET pushf
enter_popf:
    push $0x8d7
    jmp f_popf
    FVIA popf
    popf
    FRET popf
    F enter
    enter $32, $0
    leave
    FRET enter
    F enter_nested
    enter $32, $1
    leave
    FRET enter_nested
enter_leave:
    push %rbp
    mov %rsp, %rbp
    sub $64, %rsp
    jmp f_leave
    FVIA leave
    leave
    FRET leave
    F mov_rsp
    mov %rsp, %rbp
    FRET mov_rsp
    F sub_rsp
    sub $0x18, %rsp
    add $0x18, %rsp
    FRET sub_rsp
    F lea_rsp
    lea -0x80(%rsp), %rsp
    sub $-0x80, %rsp
    FRET lea_rsp
    F and_rsp
    and $-16, %rsp
    add $8, %rsp
    FRET and_rsp
    F red_zone
    mov %rax, -8(%rsp)
    mov %rdx, -128(%rsp)
    mov -8(%rsp), %r10
    mov -128(%rsp), %r11
    FRET red_zone

// ---- the kernel, and faults
enter_syscall:
    mov $24, %eax
    jmp f_syscall
    FVIA syscall
    syscall
    FRET syscall
enter_syscall_none:
    mov $-1, %rax
    jmp f_syscall_none
    FVIA syscall_none
    syscall
    FRET syscall_none
enter_syscall_blocks:
    mov %fs:t_timer@tpoff, %edi
    xor %eax, %eax
    lea t_expired@tpoff, %rsi
    add %fs:0, %rsi
    mov $8, %edx
    jmp f_syscall_blocks
    FVIA syscall_blocks, SLOW
    syscall
    mov $0, %edi
    FRET syscall_blocks
    .globl f_restorer
    .type f_restorer, @function
f_restorer:
    mov $15, %eax
    syscall
    .size f_restorer, . - f_restorer
    .globl f_handler
    .type f_handler, @function
f_handler:
    lock incq handled(%rip)
    ret
    .size f_handler, . - f_handler
enter_div_zero:
    xor %ecx, %ecx
    jmp f_div_zero
    FVIA div_zero, FAULTS
    div %rcx
    FRET div_zero
    F hlt, FAULTS
    hlt
    E f_hlt
    F load_null, FAULTS
    mov 0x10, %eax
    FRET load_null
    F store_null, FAULTS
    movl $1, 0x20
    FRET store_null
    F store_text, FAULTS
    movb $1, f_store_text(%rip)
    FRET store_text
enter_rep_fault:
    mov %fs:t_guard@tpoff, %rdi
    sub $24, %rdi
    mov $40, %ecx
    jmp f_rep_fault
    FVIA rep_fault, FAULTS
    rep stosb
    FRET rep_fault
    F misaligned, FAULTS
    movaps 1(%rsi), %xmm1
    FRET misaligned
    F misaligned_rip, FAULTS
    movaps d_number+1(%rip), %xmm1
    FRET misaligned_rip
    F in_port, FAULTS
    in $0x80, %al
    FRET in_port
    F nop_int3, FAULTS
    nop
    int3
    E f_nop_int3
    F mov_ss
    mov %r9d, %ss
    mov $1, %eax
    FRET mov_ss
    F cpuid
    xor %eax, %eax
    cpuid
    FRET cpuid
enter_cpuid_first:
    xor %eax, %eax
    jmp f_cpuid_first
    FVIA cpuid_first
    cpuid
    FRET cpuid_first
    F rdtsc
    rdtsc
    mov $0, %eax
    mov $0, %edx
    FRET rdtsc
enter_xgetbv:
    xor %ecx, %ecx
    jmp f_xgetbv
    FVIA xgetbv
    xgetbv
    FRET xgetbv

// ---- strings
    .macro STRING name, prefix:req, op:req
    F \name
    \prefix \op
    FRET \name
enter_\name\()_none:
    xor %ecx, %ecx
    jmp f_\name\()_none
    FVIA \name\()_none
    \prefix \op
    FRET \name\()_none
    .endm
    STRING rep_movsb, rep, movsb
    STRING rep_movsq, rep, movsq
    STRING rep_stosb, rep, stosb
    STRING rep_stosq, rep, stosq
    STRING rep_lodsb, rep, lodsb
    STRING repne_scasb, repne, scasb
    STRING repe_cmpsb, repe, cmpsb
enter_rep_long:
    mov $3000, %ecx
    jmp f_rep_long
    FVIA rep_long
    rep movsb
    FRET rep_long
enter_rep_backwards:
    std
    add $100, %rsi
    add $100, %rdi
    jmp f_rep_backwards
    FVIA rep_backwards
    rep movsb
    FRET rep_backwards
    F movsb
    movsb
    FRET movsb
    F lodsw
    lodsw
    FRET lodsw
    F std
    std
    cld
    FRET std

// ---- lengths and prefixes
    F endbr64
    endbr64
    FRET endbr64
    F nop1
    nop
    FRET nop1
    F nop2
    .byte 0x66, 0x90
    FRET nop2
    F nop3
    .byte 0x0f, 0x1f, 0x00
    FRET nop3
    F nop4
    .byte 0x0f, 0x1f, 0x40, 0x00
    FRET nop4
    F nop5
    .byte 0x0f, 0x1f, 0x44, 0x00, 0x00
    FRET nop5
    F nop6
    .byte 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00
    FRET nop6
    F nop7
    .byte 0x0f, 0x1f, 0x80, 0, 0, 0, 0
    FRET nop7
    F nop8
    .byte 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    FRET nop8
    F nop9
    .byte 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    FRET nop9
    F nop15
    .byte 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    FRET nop15
    F pause
    pause
    FRET pause
    F length1
    cltd
    FRET length1
    F length2
    xor %eax, %eax
    FRET length2
    F length3
    mov %rdx, %rax
    FRET length3
    F length4
    lea 8(%rdx), %rax
    FRET length4
    F length5
    mov $0x12345678, %eax
    FRET length5
    F length6
    add $0x12345678, %edx
    FRET length6
    F length7
    lea 0x1000(%rdx), %rax
    FRET length7
    F length8
    lea 0x1000(%rdx,%rcx,8), %rax
    FRET length8
    F length9
    .byte 0x64, 0x48, 0x0f, 0xb6, 0x04, 0x25, 0x28, 0, 0, 0
    FRET length9
    F length10
    movabs $0x1122334455667788, %rax
    FRET length10
    F length11
    movq $0x12345678, 0x200(%rdi)
    FRET length11
    F length12
    movq $0x12345678, 0x200(%rdi,%rcx,8)
    FRET length12
    F length13
    .byte 0x3e
    movq $0x12345678, 0x200(%rdi,%rcx,8)
    FRET length13
    F length14
    .byte 0x3e, 0x3e
    movq $0x12345678, 0x200(%rdi,%rcx,8)
    FRET length14
    F length15
    .byte 0x3e, 0x3e, 0x3e
    movq $0x12345678, 0x200(%rdi,%rcx,8)
    FRET length15
    F prefixes_many
    .byte 0x2e, 0x3e, 0x26, 0x36, 0x2e, 0x3e, 0x26, 0x36, 0x48
    mov %edx, %eax
    FRET prefixes_many
    F prefix_rex_ignored
    .byte 0x48, 0x66
    mov %edx, %eax
    FRET prefix_rex_ignored
    F prefix_addr32
    lea 8(%edx,%ecx), %rax
    FRET prefix_addr32
    F lock_add
    lock addl $3, 8(%rsi)
    FRET lock_add
    F lock_cmpxchg
    lock cmpxchg %rdx, 8(%rsi)
    FRET lock_cmpxchg
    F lock_bts
    lock btsl $5, 8(%rsi)
    FRET lock_bts
    F xacquire
    .byte 0xf2
    lock addl $3, 8(%rsi)
    FRET xacquire
    F fs_load
    mov %fs:t_word@tpoff, %rax
    FRET fs_load
    F fs_store
    mov %rdx, %fs:t_word2@tpoff
    FRET fs_store
    F fs_canary
    movzbl %fs:0x28, %eax
    FRET fs_canary
    F x87_load
    fld1
    fistpll (%rsi)
    FRET x87_load
    F x87_wait
    fstcw 8(%rsi)
    FRET x87_wait
    F x87_stack
    fldpi
    fstp %st(0)
    FRET x87_stack
    F popcnt
    popcnt %rdx, %rax
    FRET popcnt
    F bswap
    bswap %rdx
    FRET bswap
    F shl_cl
    shl %cl, %rdx
    FRET shl_cl
    F xlat
    xlat
    FRET xlat
    F carry
    cmc
    FRET carry
    F lahf
    lahf
    FRET lahf
    F sahf
    sahf
    FRET sahf
    F mfence
    mfence
    FRET mfence
    F fxsave_area
    stmxcsr (%rsi)
    FRET fxsave_area
    // The first instruction lies in two pages.
    .p2align 12, 0xcc
    .skip 4093, 0xcc
    ENTRY f_two_pages, 0, f_two_pages
    .globl f_two_pages
    .type f_two_pages, @function
f_two_pages:
    movabs $0x1122334455667788, %rax
    FRET two_pages

// ---- what is refused
    R int3, FAULTS
    int3
    ret
    E r_int3
    R ud2, FAULTS
    ud2
    ret
    E r_ud2
    R int80, NOT_CALLED
    int $0x80
    ret
    E r_int80
    R int1, NOT_CALLED
    int1
    ret
    E r_int1
    R int3_long, NOT_CALLED
    int $3
    ret
    E r_int3_long
    R xbegin, NEEDS_RTM | RACES
    xbegin 2f
    xend
2:  ret
    E r_xbegin
    R sysenter, NOT_CALLED
    sysenter
    ret
    E r_sysenter
    R sysret, NOT_CALLED
    sysretq
    ret
    E r_sysret
    R lcall, NOT_CALLED
    lcall *(%rdi)
    ret
    E r_lcall
    R call16, NOT_CALLED
    .byte 0x66, 0xe8, 0, 0, 0, 0
    ret
    E r_call16
    R jmp16, NOT_CALLED
    .byte 0x66, 0xe9, 0, 0, 0, 0
    ret
    E r_jmp16
    R eip_load, NOT_CALLED
    mov d_number(%eip), %eax
    ret
    E r_eip_load
    R invalid, NOT_CALLED
    .byte 0x06
    ret
    E r_invalid

    .data
    .p2align 6
    .globl d_end
d_end:

// ---- long invoke(void *function, struct registers *in_and_out): sets all registers, calls, and takes them all.
    .text
    .globl invoke
    .type invoke, @function
invoke:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    sub $264, %rsp
    mov %rdi, %fs:t_function@tpoff
    mov %rsi, %fs:t_registers@tpoff
    mov %rsp, 128(%rsi)
    push 120(%rsi)
    popf
    mov 0(%rsi), %rax
    mov 8(%rsi), %rbx
    mov 16(%rsi), %rcx
    mov 24(%rsi), %rdx
    mov 40(%rsi), %rdi
    mov 48(%rsi), %rbp
    mov 56(%rsi), %r8
    mov 64(%rsi), %r9
    mov 72(%rsi), %r10
    mov 80(%rsi), %r11
    mov 88(%rsi), %r12
    mov 96(%rsi), %r13
    mov 104(%rsi), %r14
    mov 112(%rsi), %r15
    mov 32(%rsi), %rsi
    call *%fs:t_function@tpoff
    mov %rsp, %fs:t_rsp@tpoff
    mov %rax, %fs:t_rax@tpoff
    mov %fs:t_registers@tpoff, %rax
    mov 128(%rax), %rsp
    pushf
    pop 120(%rax)
    push $0x202
    popf
    mov %rbx, 8(%rax)
    mov %rcx, 16(%rax)
    mov %rdx, 24(%rax)
    mov %rsi, 32(%rax)
    mov %rdi, 40(%rax)
    mov %rbp, 48(%rax)
    mov %r8, 56(%rax)
    mov %r9, 64(%rax)
    mov %r10, 72(%rax)
    mov %r11, 80(%rax)
    mov %r12, 88(%rax)
    mov %r13, 96(%rax)
    mov %r14, 104(%rax)
    mov %r15, 112(%rax)
    mov %fs:t_rax@tpoff, %rdx
    mov %rdx, 0(%rax)
    mov %fs:t_rsp@tpoff, %rdx
    sub %rsp, %rdx
    mov %rdx, 136(%rax)
    add $264, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .size invoke, . - invoke

    .section .tbss, "awT", @nobits
    .p2align 3
    .globl t_timer, t_guard
t_function: .zero 8
t_registers: .zero 8
t_rsp: .zero 8
t_rax: .zero 8
t_timer: .zero 8
t_expired: .zero 8
t_guard: .zero 8
t_word2: .zero 8
    .section .tdata, "awT", @progbits
    .p2align 3
t_word: .quad 0x0123456789abcdef

    .section .note.GNU-stack, "", @progbits
