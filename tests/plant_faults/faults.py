"""The faults that plant_faults.py plants, and the tests that have to notice each."""

import dataclasses

from cuda_faults import CUDA_FAULTS


@dataclasses.dataclass(frozen=True)
class Fault:
    file: str
    breaks: str
    edits: tuple  # of (text that the file has exactly once, what takes its place)
    targets: tuple


def fault(file, breaks, old, new, *targets, more=()):
    names = tuple(t if t.startswith("//") else f"//tests/conformance:{t}_test" for t in targets)
    return Fault(file, breaks, ((old, new), *more), names)


KERNELS = "//tests/kernels:"
COMPRESSORS = "//tests/compressors:"

FAULTS = (
    # Error feedback.
    fault("compressors/error_feedback.cc", "drops the residual",
          "    inner_.SendFeedback(round,",
          "    if (round == 0) kernels::Fill(context.backend, 0.0F, state.residual.span());\n"
          "    inner_.SendFeedback(round,",
          "error_feedback",
          more=(('#include "compressors/api/registry.h"',
                 '#include "compressors/api/registry.h"\n#include "kernels/elementwise.h"'),)),
    fault("compressors/error_feedback.cc", "does not save the residual",
          'visit("residual", residual);', "", "state"),
    fault("compressors/error_feedback.cc", "does not save the wrapped state",
          'visit("inner", inner);', "", "state"),
    fault("compressors/api/codec.cc", "feeds back without subtracting",
          "SLIMGRAD_CHECK(DecodeAdd(payload.view(), context, -1.0F, residual).ok());", "", "fused"),
    fault("compressors/api/codec.cc", "overwrites by adding",
          "kernels::Fill(context.backend, 0.0F, y);", "", "fused"),
    fault("compressors/api/recoder.cc", "feeds back as if recoding lost nothing",
          "if (recoder_->lossless()) {", "if (true) {", "fused", "error_feedback"),
    fault("compressors/power_sgd.cc", "subtracts nothing in the fused last round",
          "kernels::OuterFeedback(context.backend, *context.scratch, state.p.span(), "
          "state.q.span(), rows,\n                           cols, rank, average, residual);",
          "kernels::Outer(context.backend, *context.scratch, state.p.span(), state.q.span(), rows, "
          "cols,\n                   rank, average);",
          "fused", "error_feedback"),
    fault("compressors/error_feedback.cc", "keeps the wrapped method's claims",
          "plan.traits = {.fixed_size = plan.traits.fixed_size, .exact = plan.traits.exact};", "",
          "traits"),
    fault("compressors/error_feedback.cc", "carries infinities",
          'find("overflow=inf") != std::string::npos', 'find("overflow=inf") == 0',
          COMPRESSORS + "make_test"),
    fault("compressors/power_sgd.cc", "adds the gradient in every round",
          "if (round == 0) kernels::AddSaturated(", "kernels::AddSaturated(", "error_feedback"),
    fault("kernels/scatter_cpu.cc", "scatter without a bounds check",
          "std::atomic<bool> ascends = indices.back() < size;", "std::atomic<bool> ascends = true;",
          "hostile"),
    fault("kernels/scatter_cpu.cc", "scatter takes an index twice",
          "indices[j] < indices[j + 1] ? 0U : 1U", "indices[j] <= indices[j + 1] ? 0U : 1U",
          "hostile"),
    fault("kernels/select_filter_cpu.cc", "top_k, cpu: of a tie all are taken",
          "    if (tie) --f.cut.ties;\n", "", KERNELS + "select_test", "literals"),
    fault("kernels/select_filter_cpu.cc", "top_k leaves in the residual what it has sent",
          "taken ? 0.0F : at[j];", "taken ? at[j] : at[j];", KERNELS + "select_test"),
    fault("kernels/select_cpu.cc", "top_k does not bring back what it cleared by mistake",
          "        residual_[stripe.list.indices[j]] = stripe.list.values[j];", "        (void)j;",
          KERNELS + "select_test"),
    fault("kernels/select_ref.cc", "top_k, ref: of a tie the higher index wins",
          "std::iota(order.begin(), order.end(), 0U);", "std::iota(order.rbegin(), order.rend(), 0U);",
          KERNELS + "select_test"),
    fault("kernels/select_rank_cpu.cc", "top_k sees values in place of magnitudes",
          "to[i] = std::bit_cast<std::int32_t>(x[i]) & kLargestMagnitude;",
          "to[i] = std::max(0, std::bit_cast<std::int32_t>(x[i]));",
          KERNELS + "select_test", "traits"),
    fault("compressors/top_k.cc", "rounds k down",
          "std::round(ratio *", "std::floor(ratio *", "literals"),
    fault("compressors/top_k.cc", "claims to contract more than it does",
          "traits.delta = static_cast<double>(k) / static_cast<double>(n);",
          "traits.delta = std::sqrt(static_cast<double>(k) / static_cast<double>(n));", "traits"),
    fault("compressors/delta_index.cc", "claims a fixed size",
          "bool fixed_size() const override { return false; }",
          "bool fixed_size() const override { return true; }", "traits"),
    fault("kernels/index_code_cpu.cc", "drops the last gap",
          "return length;", "return length > 0 ? length - 1 : 0;", "ranks"),
    fault("kernels/index_code_cpu.cc", "takes codes in a longer form",
          'if (byte == 0 && shift != 0) return error(j, "the shortest form", 0);', "", "hostile"),
    fault("compressors/fp16_values.cc", "claims to lose nothing",
          "bool lossless() const override { return false; }",
          "bool lossless() const override { return true; }", "traits"),
    fault("compressors/fp16_values.cc", "does not count what saturates",
          "&context.counters->saturated", "nullptr", "literals"),

    # Quantisation and signs.
    fault("kernels/quantize-inl.h", "stochastic rounding rounds down",
          "hn::Set(kF32, 128.0F - 0x1p-17F)", "hn::Set(kF32, 129.0F)", "traits"),
    fault("kernels/quantize_call.h", "divides by the norm of a block of zeros",
          "scale == 0 ? 0.0F : largest", "largest", KERNELS + "quantize_reference_test"),
    fault("compressors/int8.cc", "all ranks draw the same bits",
          'context.PrivateKey("int8.rounding")', 'context.SharedKey("int8.rounding")', "traits"),
    fault("compressors/int8.cc", "nearest rounding claims to be unbiased",
          "{.unbiased = stochastic,", "{.unbiased = true,", "traits"),
    fault("core/random.cc", "every step draws the same bits",
          "return {hasher.Digest(), step};", "return {hasher.Digest(), step & 0};", "traits"),
    fault("kernels/sign_cpu.cc", "a zero counts as negative",
          "return hn::Ge(x, hn::Zero(kF32));", "return hn::Gt(x, hn::Zero(kF32));",
          KERNELS + "sign_test", "literals"),
    fault("kernels/sign_cpu.cc", "padding of a short block counts as positive",
          "Plain{part.at}, 0, up, down) & LowBits(end - i);", "Plain{part.at}, 0, up, down);",
          KERNELS + "sign_test"),
    fault("compressors/scaled_sign.cc", "claims to contract more than it does",
          "1.0 / static_cast<double>(std::min(block_, n)) * 0.999", "0.6", "traits"),
    fault("compressors/half.h", "overflow=inf saturates",
          '"inf" ? kernels::Overflow::kInfinity', '"inf" ? kernels::Overflow::kSaturate',
          "literals"),

    # PowerSGD.
    fault("compressors/power_sgd.cc", "averages to another number of ranks",
          "kernels::Copy(context.backend, mean, basis);\n    if (round > 0)",
          "kernels::Copy(context.backend, mean, basis);\n    if (false)", "ranks", "literals"),
    fault("compressors/power_sgd.cc", "does not save its warm start",
          'void Fields(FieldVisitor& visit) { visit("warm", warm); }',
          "void Fields(FieldVisitor&) {}", "state"),
    fault("compressors/power_sgd.cc", "starts anew every step",
          "kernels::Orthonormalize(context.backend, *context.scratch, round == 0 ? rows : cols,",
          "if (round > 0) kernels::Fill(context.backend, 0.0F, basis);\n"
          "    kernels::Orthonormalize(context.backend, *context.scratch, round == 0 ? rows : cols,",
          "literals"),
    fault("compressors/power_sgd.cc", "goes dense without a word",
          'plan.dense_reason = tensor.shape.size() < 2 ? "not a matrix" : '
          '"factors would not be smaller";', "", "shapes"),
    fault("compressors/small_tensors.cc", "goes dense without a word",
          'plan.dense_reason = "fewer than " + std::to_string(below_) + " elements";', "{}",
          "shapes"),

    # Payloads, frames, state.
    fault("core/frame.cc", "takes any checksum", "header.checksum != sum", "header.checksum == 0",
          "frames"),
    fault("core/frame.cc", "takes any number of sections",
          "if (payload->sections().size() != header.sections)", "if (header.sections > 8)",
          "frames"),
    fault("core/frame.cc", "takes bytes behind the frame",
          "if (frame.bytes != bytes.size())", "if (frame.bytes > bytes.size())", "frames"),
    fault("core/frame.cc", "takes a frame of another step",
          'SLIMGRAD_RETURN_IF_ERROR(CheckSame("step", expected.step, frame.info.step));', "",
          "frames"),
    fault("core/payload.cc", "takes a section of another type",
          "if (section->type != type)", "if (section->type.tag != type.tag)", "hostile"),
    fault("core/payload.h", "takes any number of elements",
          "if (section->count() != count)", "if (section->count() > (count << 40))", "hostile"),
    fault("core/state_file.cc", "takes another rank's state",
          'SLIMGRAD_RETURN_IF_ERROR(CheckSame(origin, "rank", expected.rank, found.rank));', "",
          "state"),

    # Exchange and groups.
    fault("comm/exchange.cc", "a restored run counts steps from zero",
          "step_ = locals_[l].restored_step = header.step;",
          "locals_[l].restored_step = header.step;", "state"),
    fault("comm/exchange.cc", "a skipped step is not counted", "  ++step_;",
          "  if (!report_.skipped) ++step_;", "nonfinite"),
    fault("comm/exchange.cc", "looks for NaN in the first tensor only",
          "t < tensors_.size() && bad == kAllFinite", "t < 1 && bad == kAllFinite", "nonfinite"),
    fault("kernels/elementwise_cpu.cc", "infinity passes for finite",
          "backend, x, kF32Infinity, count32", "backend, x, kF32Infinity + 1, count32", "nonfinite"),
    fault("comm/exchange.cc", "a skipped step is run all the same",
          "t < tensors_.size() && !report_.skipped", "t < tensors_.size()", "nonfinite"),
    fault("comm/exchange.cc", "every rank takes itself for rank 0",
          "context.rank = local.rank;", "context.rank = local.rank * 0;", "traits"),
    fault("comm/exchange.cc", "allocates in every step", "report_.Begin(step_);",
          "report_.skip_reason = std::string(100, ' ');\n  report_.Begin(step_);",
          "allocation"),
    fault("comm/exchange.cc", "reads 16-bit averages into the wrong rank",
          "for (std::size_t l = 0; l < averages.size(); ++l)\n      kernels::Narrow(",
          "for (std::size_t l = 1; l < averages.size(); ++l)\n      kernels::Narrow(",
          "edge_inputs"),
    fault("compressors/api/compressor.cc", "two ranks' sum is not divided",
          "if (n == 1) return {};", "if (n <= 2) return {};", "ranks"),
    fault("compressors/api/compressor.cc", "a sum over ranks overflows",
          "again.backend.only_if = overflowed.data();",
          "static const std::uint64_t kNever = 0; again.backend.only_if = &kNever;",
          "edge_inputs"),
    fault("compressors/api/compressor.cc", "gradient and residual overflow together",
          "kernels::AddSaturated(context.backend, x, residual);",
          "kernels::AddScaled(context.backend, x, 1.0F, residual);", "fused"),
    fault("kernels/combine_cpu.cc", "a mean of huge values overflows",
          "return !AnyAtLeast(top, Format::kOverflowsFrom);", "return true;", "edge_inputs"),
    fault("kernels/combine_cpu.cc", "a mean of many ranks overflows fp16",
          "AnyAtLeast(top, Format::kOverflowsFrom)", "AnyAtLeast(top, kF32Infinity)",
          KERNELS + "combine_test"),
    fault("kernels/float8_cpu.cc", "E4M3 overflows at its last tie",
          "kOverflowsFrom = 0x43E80001;", "kOverflowsFrom = 0x43E80000;", KERNELS + "float8_test"),
    fault("kernels/float8_cpu.cc", "feeds back what overflowed without saturating the sum",
          "AddSaturatedOneByOne(in, residual);",
          "for (std::size_t i = 0; i < kGroup; ++i) residual[i] += in[i];",
          KERNELS + "float8_test"),
    fault("comm/group.cc", "counts what a rank sends to itself",
          "messages[r].size() * (messages.size() - 1)", "messages[r].size() * messages.size()",
          "ranks"),
    fault("comm/threads_group.cc", "combines the first rank's chunk everywhere",
          "const Chunk chunk = ChunkOf(count, size_, rank_);",
          "const Chunk chunk = ChunkOf(count, size_, rank_ * 0);", "ranks"),
    fault("comm/threads_group.cc", "does not count its own chunk as sent",
          "traffic.sent[Index()] +=\n        table_->at(rank_).combined.size() *",
          "traffic.sent[Index()] += 0 *\n        table_->at(rank_).combined.size() *", "ranks"),

    # Spec language.
    fault("compressors/api/spec.cc", "nests without end",
          "if (depth == kMaxSpecDepth)", "if (depth == 1000)", COMPRESSORS + "spec_test"),
    fault("compressors/api/spec.cc", "points one character too far",
          "position - begin + 1));", "position - begin + 2));", COMPRESSORS + "spec_test"),
    fault("compressors/api/parameter.cc", "takes NaN for a number",
          "return std::isfinite(value) && ", "return ", COMPRESSORS + "make_test"),
    fault("compressors/api/make.cc", "leaves defaults out of the canonical text",
          "SLIMGRAD_RETURN_IF_ERROR(\n          Set(node.name, parameter, argument, arguments, "
          "texts[parameter.name()]));",
          "std::string unseen;\n      SLIMGRAD_RETURN_IF_ERROR("
          "Set(node.name, parameter, argument, arguments, unseen));",
          COMPRESSORS + "make_test"),
    fault("compressors/BUILD", "lets the linker leave methods out",
          "alwayslink = True,", "alwayslink = False,", COMPRESSORS + "registry_test"),

    # GPUs.
    *(fault(*fields, *targets) for *fields, targets in CUDA_FAULTS),
)
