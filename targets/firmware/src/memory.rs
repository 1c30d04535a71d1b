//! How memory is copied and filled: the functions that the compiler calls for it.
//!
//! Rust's own (compiler_builtins) never read a word from an address that is not aligned, and put words
//! together by shifting instead: three instructions a byte, where data of the network mostly lies, and
//! fifteen times the flash. These let the processor do it: every Cortex-M that the firmware is built for
//! can.

use core::arch::global_asm;

// `r0` is where to, `r1` where from, `r2` how many bytes. What is longer than 16 bytes goes in pieces of 16,
// to addresses that are aligned. Of the length, four bits are left then: each says whether there are 8, 4, 2
// bytes or one more, and two of them at a time are shifted into the flags C and N. Pieces are read before
// they are written, and from low addresses to high ones: so what lies higher may be moved lower by the
// same code.
global_asm!(
    "
    .syntax unified
    .thumb
    .section .text.picokube_copy, \"ax\", %progbits
    .balign 4
    .global memcpy, __aeabi_memcpy, __aeabi_memcpy4, __aeabi_memcpy8
    .type memcpy, %function
    .type __aeabi_memcpy, %function
    .type __aeabi_memcpy4, %function
    .type __aeabi_memcpy8, %function
memcpy:
__aeabi_memcpy:
__aeabi_memcpy4:
__aeabi_memcpy8:
    push    {{r0, r4, r5, lr}}
    cmp     r2, #16
    blo     4f
0:  lsls    r3, r0, #30
    beq     1f
    ldrb    r3, [r1], #1
    subs    r2, r2, #1
    strb    r3, [r0], #1
    b       0b
1:  subs    r2, r2, #16
    blo     4f
    lsls    r3, r1, #30
    bne     3f
2:  ldmia   r1!, {{r3, r4, r5, r12}}
    subs    r2, r2, #16
    stmia   r0!, {{r3, r4, r5, r12}}
    bhs     2b
    b       4f
3:  ldr     r3, [r1], #4
    ldr     r4, [r1], #4
    ldr     r5, [r1], #4
    ldr     r12, [r1], #4
    subs    r2, r2, #16
    stmia   r0!, {{r3, r4, r5, r12}}
    bhs     3b
4:  lsls    r3, r2, #29
    itttt   cs
    ldrcs   r3, [r1], #4
    ldrcs   r4, [r1], #4
    strcs   r3, [r0], #4
    strcs   r4, [r0], #4
    itt     mi
    ldrmi   r3, [r1], #4
    strmi   r3, [r0], #4
    lsls    r3, r2, #31
    itt     cs
    ldrhcs  r3, [r1], #2
    strhcs  r3, [r0], #2
    itt     mi
    ldrbmi  r3, [r1]
    strbmi  r3, [r0]
    pop     {{r0, r4, r5, pc}}
    .size memcpy, . - memcpy

    .section .text.picokube_move, \"ax\", %progbits
    .balign 4
    .global memmove, __aeabi_memmove, __aeabi_memmove4, __aeabi_memmove8
    .type memmove, %function
    .type __aeabi_memmove, %function
    .type __aeabi_memmove4, %function
    .type __aeabi_memmove8, %function
memmove:
__aeabi_memmove:
__aeabi_memmove4:
__aeabi_memmove8:
    subs    r3, r0, r1
    cmp     r3, r2
    bhs     memcpy
    add     r12, r0, r2
    add     r1, r1, r2
    subs    r2, r2, #4
    blo     6f
5:  ldr     r3, [r1, #-4]!
    subs    r2, r2, #4
    str     r3, [r12, #-4]!
    bhs     5b
6:  lsls    r3, r2, #31
    itt     cs
    ldrhcs  r3, [r1, #-2]!
    strhcs  r3, [r12, #-2]!
    itt     mi
    ldrbmi  r3, [r1, #-1]
    strbmi  r3, [r12, #-1]
    bx      lr
    .size memmove, . - memmove

    .section .text.picokube_fill, \"ax\", %progbits
    .balign 4
    .global memset, __aeabi_memset, __aeabi_memset4, __aeabi_memset8
    .global __aeabi_memclr, __aeabi_memclr4, __aeabi_memclr8
    .type memset, %function
    .type __aeabi_memset, %function
    .type __aeabi_memset4, %function
    .type __aeabi_memset8, %function
    .type __aeabi_memclr, %function
    .type __aeabi_memclr4, %function
    .type __aeabi_memclr8, %function
__aeabi_memclr:
__aeabi_memclr4:
__aeabi_memclr8:
    movs    r2, #0
__aeabi_memset:
__aeabi_memset4:
__aeabi_memset8:
    mov     r3, r1
    mov     r1, r2
    mov     r2, r3
memset:
    push    {{r0, r4, r5, lr}}
    uxtb    r1, r1
    orr     r1, r1, r1, lsl #8
    orr     r1, r1, r1, lsl #16
    cmp     r2, #16
    blo     9f
7:  lsls    r3, r0, #30
    ittt    ne
    strbne  r1, [r0], #1
    subne   r2, r2, #1
    bne     7b
    mov     r4, r1
    mov     r5, r1
    mov     r12, r1
    subs    r2, r2, #16
    blo     9f
8:  subs    r2, r2, #16
    stmia   r0!, {{r1, r4, r5, r12}}
    bhs     8b
9:  lsls    r3, r2, #29
    itt     cs
    strcs   r1, [r0], #4
    strcs   r1, [r0], #4
    it      mi
    strmi   r1, [r0], #4
    lsls    r3, r2, #31
    it      cs
    strhcs  r1, [r0], #2
    it      mi
    strbmi  r1, [r0]
    pop     {{r0, r4, r5, pc}}
    .size memset, . - memset
    "
);
