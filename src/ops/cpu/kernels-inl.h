// The kernel table of one instruction set: include after its lanes_*.h, with VEDETTE_ISA naming its namespace.
//
// Files that include this are compiled for an instruction set the machine may lack. So nothing here may instantiate
// an inline function that other files share: the linker could keep this file's copy for everyone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cpu/attention-inl.h"
#include "ops/cpu/elementwise-inl.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/norm-inl.h"
#include "ops/cpu/rope-inl.h"

namespace vedette::ops::cpu::VEDETTE_ISA {

inline constexpr Kernels kKernels = {
    .norm = norm,
    .add_scaled = add_scaled,
    .scale = scale,
    .clip = clip,
    .activate = activate,
    .gated_activation = gated_activation,
    .finish_logits = finish_logits,
    .rope = rope,
    .store_kv = store_kv,
    .attention_queries = attention_queries,
    .attention_split = attention_split,
    .attention_merge = attention_merge,
    .attention_finish = attention_finish,
};

}  // namespace vedette::ops::cpu::VEDETTE_ISA
