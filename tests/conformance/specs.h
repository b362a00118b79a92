// The compressors that the conformance suite runs: a new one is one line here. method_test.cc holds
// this list and the registry together, so that no method can be left out.
#pragma once

#include <array>

namespace slimgrad::conformance {

enum class Draws { kNothing, kRandomBits };  // kRandomBits: equal ranks send different payloads

struct Spec {
  const char* text;
  Draws draws = Draws::kNothing;
};

inline constexpr std::array kSpecs = {
    Spec{"none"},
    Spec{"fp16"},
    Spec{"bf16"},
    Spec{"int8(block=32)"},
    Spec{"int8(block=32,rounding=stochastic)", Draws::kRandomBits},
    Spec{"top_k(ratio=0.1)"},
    Spec{"top_k(k=20)|delta_index"},
    Spec{"top_k(ratio=0.1)|delta_index|fp16_values"},
    Spec{"top_k(ratio=0.1)|fp16_values|delta_index"},
    Spec{"one_bit(block=48)"},
    Spec{"scaled_sign(block=48)"},
    Spec{"power_sgd(rank=2)"},
    Spec{"error_feedback(top_k(ratio=0.05)|delta_index)"},
    Spec{"error_feedback(int8(block=32,rounding=stochastic))", Draws::kRandomBits},
    Spec{"error_feedback(power_sgd(rank=1))"},
    Spec{"small_tensors(error_feedback(scaled_sign),below=20,use=none)"},
    Spec{"error_feedback(small_tensors(one_bit,below=20,use=fp16))"},
};

}  // namespace slimgrad::conformance
