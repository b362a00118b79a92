#include "benchmarks/cuda_operations.h"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "kernels/blocks.h"
#include "kernels/combine.h"
#include "kernels/convert.h"
#include "kernels/elementwise.h"
#include "kernels/float8.h"
#include "kernels/low_rank.h"
#include "kernels/qsgd.h"
#include "kernels/quantize.h"
#include "kernels/select.h"
#include "kernels/sign.h"

namespace slimgrad::benchmarks {
namespace {

namespace k = kernels;

constexpr std::size_t kLevelBlock = 4096;  // of one_bit
constexpr RandomKey kKey = {42, 7};

std::span<half_bits> Halves(Arrays& a) {
  return {reinterpret_cast<half_bits*>(a.codes.data()), a.codes.size() / 2};
}
std::span<bfloat16_bits> Brains(Arrays& a) {
  return {reinterpret_cast<bfloat16_bits*>(a.codes.data()), a.codes.size() / 2};
}
std::span<std::int8_t> Codes8(Arrays& a) {
  return {reinterpret_cast<std::int8_t*>(a.codes.data()), a.codes.size()};
}

void AddConversions(std::vector<CudaOperation>& all) {
  const auto in = [](std::size_t n) { return Sizes{.x = n, .residual = 0, .codes = 2 * n}; };
  const auto both = [](std::size_t n) { return Sizes{.x = n, .residual = n, .codes = 2 * n}; };
  const auto out = [](std::size_t n) { return Sizes{.x = n, .y = n, .codes = 2 * n}; };
  const CudaCall encode = [](const Backend& b, Scratch&, Arrays& a) {
    k::F32ToF16(b, a.x.span(), Halves(a), k::Overflow::kSaturate, a.count.data());
  };
  all.push_back({"f32_to_f16", 6, in, {}, encode});
  all.push_back({"f32_to_bf16", 6, in, {}, [](const Backend& b, Scratch&, Arrays& a) {
                   k::F32ToBF16(b, a.x.span(), Brains(a), k::Overflow::kSaturate, a.count.data());
                 }});
  all.push_back({"f32_to_f16_feedback", 14, both, {}, [](const Backend& b, Scratch&, Arrays& a) {
                   k::F32ToF16Feedback(b, a.x.span(), a.residual.span(), Halves(a),
                                       k::Overflow::kSaturate, a.count.data());
                 }});
  all.push_back({"f16_to_f32", 6, out, encode, [](const Backend& b, Scratch&, Arrays& a) {
                   k::F16ToF32(b, Halves(a), a.y.span());
                 }});
}

void AddFloat8s(std::vector<CudaOperation>& all, k::Float8 format, const std::string& name) {
  const auto sizes = [](std::size_t n) { return Sizes{.x = n, .residual = n, .y = n, .codes = n}; };
  const CudaCall encode = [=](const Backend& b, Scratch&, Arrays& a) {
    k::F32ToF8(b, format, a.x.span(), a.codes.span(), k::Overflow::kSaturate, a.count.data());
  };
  all.push_back({"f32_to_" + name, 5, sizes, {}, encode});
  all.push_back(
      {"f32_to_" + name + "_feedback", 13, sizes, {}, [=](const Backend& b, Scratch&, Arrays& a) {
         k::F32ToF8Feedback(b, format, a.x.span(), a.residual.span(), a.codes.span(),
                            k::Overflow::kSaturate, a.count.data());
       }});
  all.push_back({name + "_to_f32", 5, sizes, encode, [=](const Backend& b, Scratch&, Arrays& a) {
                   k::F8ToF32(b, format, a.codes.span(), a.y.span());
                 }});
}

void AddSigns(std::vector<CudaOperation>& all) {
  const auto sizes = [](std::size_t n) {
    const std::size_t blocks = k::BlockCount(n, kLevelBlock);
    return Sizes{
        .x = n, .residual = n, .y = n, .codes = k::BitBytes(n), .scales = blocks, .more = blocks};
  };
  const CudaCall encode = [](const Backend& b, Scratch&, Arrays& a) {
    k::OneBitEncode(b, a.x.span(), kLevelBlock, a.codes.span(), a.scales.span(), a.more.span());
  };
  all.push_back({"sign_pack", 4.125, sizes, {}, [](const Backend& b, Scratch&, Arrays& a) {
                   k::SignPack(b, a.x.span(), a.codes.span());
                 }});
  all.push_back({"sign_unpack", 4.125, sizes, encode, [](const Backend& b, Scratch&, Arrays& a) {
                   k::SignUnpack(b, a.codes.span(), a.y.span());
                 }});
  all.push_back({"one_bit", 4.127, sizes, {}, encode});
  all.push_back({"one_bit_feedback", 12.127, sizes, {}, [](const Backend& b, Scratch&, Arrays& a) {
                   k::OneBitEncodeFeedback(b, a.x.span(), a.residual.span(), kLevelBlock,
                                           a.codes.span(), a.scales.span(), a.more.span());
                 }});
  all.push_back({"one_bit_decode", 4.127, sizes, encode, [](const Backend& b, Scratch&, Arrays& a) {
                   k::OneBitDecode(b, a.codes.span(), a.scales.span(), a.more.span(), kLevelBlock,
                                   1.0F, a.y.span());
                 }});
}

CudaCall Int8(std::size_t block, k::Rounding rounding) {
  return [=](const Backend& b, Scratch&, Arrays& a) {
    k::Int8Encode(b, a.x.span(), block, rounding, kKey, Codes8(a), a.scales.span());
  };
}

std::function<Sizes(std::size_t)> QuantizedSizes(std::size_t block) {
  return [block](std::size_t n) {
    return Sizes{.x = n, .residual = n, .y = n, .codes = n, .scales = k::BlockCount(n, block)};
  };
}

void AddQuantizers(std::vector<CudaOperation>& all) {
  const auto nearest = k::Rounding::kNearest;
  all.push_back({"int8", 5.016, QuantizedSizes(256), {}, Int8(256, nearest)});
  all.push_back(
      {"int8_stochastic", 5.016, QuantizedSizes(256), {}, Int8(256, k::Rounding::kStochastic)});
  all.push_back(
      {"int8_feedback", 13.03, QuantizedSizes(128), {}, [=](const Backend& b, Scratch&, Arrays& a) {
         k::Int8EncodeFeedback(b, a.x.span(), a.residual.span(), 128, nearest, kKey, Codes8(a),
                               a.scales.span());
       }});
  all.push_back({"int8_decode", 5.016, QuantizedSizes(256), Int8(256, nearest),
                 [](const Backend& b, Scratch&, Arrays& a) {
                   k::Int8Decode(b, Codes8(a), a.scales.span(), 256, 1.0F, a.y.span());
                 }});
  all.push_back({"int4",
                 4.53,
                 [](std::size_t n) {
                   return Sizes{.x = n, .codes = k::Int4Bytes(n), .scales = k::BlockCount(n, 128)};
                 },
                 {},
                 [=](const Backend& b, Scratch&, Arrays& a) {
                   k::Int4Encode(b, a.x.span(), 128, nearest, kKey, a.codes.span(),
                                 a.scales.span());
                 }});
  all.push_back({"qsgd", 5.03, QuantizedSizes(128), {}, [](const Backend& b, Scratch&, Arrays& a) {
                   k::QsgdEncode(b, a.x.span(), 128, 127, kKey, Codes8(a), a.scales.span());
                 }});
}

std::size_t KeptOf(std::size_t n, double density) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(n) * density));
}

void AddSelections(std::vector<CudaOperation>& all) {
  // The names are those of tools/gpu_check_torch.py.
  for (const auto& [text, density] : {std::pair("0.001", 0.001), {"0.01", 0.01}, {"0.1", 0.1}}) {
    const std::string suffix = std::string("/density:") + text;
    const auto sizes = [density](std::size_t n) {
      return Sizes{.x = n, .residual = n, .y = n, .chosen = KeptOf(n, density)};
    };
    const CudaCall select = [](const Backend& b, Scratch& s, Arrays& a) {
      k::TopK(b, s, a.x.span(), a.indices.span(), a.values.span());
    };
    all.push_back({"top_k" + suffix, 4 + 8 * density, sizes, {}, select});
    all.push_back({"top_k_feedback" + suffix,
                   12 + 8 * density,
                   sizes,
                   {},
                   [](const Backend& b, Scratch& s, Arrays& a) {
                     k::TopKFeedback(b, s, a.x.span(), a.residual.span(), a.indices.span(),
                                     a.values.span());
                   }});
    all.push_back({"scatter" + suffix, 4 + 8 * density, sizes, select,
                   [](const Backend& b, Scratch&, Arrays& a) {
                     const Status status =
                         k::Scatter(b, a.indices.span(), a.values.span(), 1.0F, a.y.span());
                     SLIMGRAD_CHECK(status.ok());
                   }});
  }
}

// Rows of 1024: what is left of n is not used.
void AddLowRank(std::vector<CudaOperation>& all) {
  constexpr std::size_t kCols = 1024;
  for (const std::size_t rank : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    all.push_back({"power_sgd_step/rank:" + std::to_string(rank), 28,
                   [rank](std::size_t n) {
                     return Sizes{.x = n / kCols * kCols,
                                  .residual = n / kCols * kCols,
                                  .y = n / kCols * kCols,
                                  .scales = n / kCols * rank,
                                  .more = kCols * rank};
                   },
                   [](const Backend&, Scratch&, Arrays& a) {
                     for (std::size_t i = 0; i < a.more.size(); ++i)
                       a.more.span()[i] = static_cast<float>(i % 7) - 3.0F;
                   },
                   [rank](const Backend& b, Scratch& s, Arrays& a) {
                     const std::size_t rows = a.x.size() / kCols;
                     k::MultiplyRightFeedback(b, s, a.x.span(), a.residual.span(), rows, kCols,
                                              a.more.span(), rank, a.scales.span());
                     k::MultiplyLeft(b, s, a.residual.span(), rows, kCols, a.scales.span(), rank,
                                     a.more.span());
                     k::OuterFeedback(b, s, a.scales.span(), a.more.span(), rows, kCols, rank,
                                      a.y.span(), a.residual.span());
                   }});
  }
}

void AddPasses(std::vector<CudaOperation>& all) {
  const auto sizes = [](std::size_t n) { return Sizes{.x = n, .y = n}; };
  all.push_back({"add_saturated", 12, sizes, {}, [](const Backend& b, Scratch&, Arrays& a) {
                   k::AddSaturated(b, a.x.span(), a.y.span());
                 }});
  all.push_back(
      {"count_non_finite", 4, sizes, {}, [](const Backend& b, Scratch&, Arrays& a) {
         k::CountNonFinite(b, {a.x.data(), a.x.size(), DType::kF32, b.device}, a.count.data());
       }});
  all.push_back({"mean_of_two",
                 12,
                 [](std::size_t n) { return Sizes{.x = n, .residual = n, .y = n}; },
                 {},
                 [](const Backend& b, Scratch&, Arrays& a) {
                   const std::array<std::span<const std::byte>, 2> inputs = {
                       std::as_bytes(a.x.span()), std::as_bytes(a.residual.span())};
                   k::Combine(b, k::CombineOp::kMean, DType::kF32, inputs,
                              std::as_writable_bytes(a.y.span()));
                 }});
}

// Calls each(host's bytes, device's bytes) for every array.
template <class Each>
void ForArrays(Arrays& host, Arrays& device, Each each) {
  const auto pair = [&](auto& a, auto& b) {
    each(std::as_writable_bytes(a.span()), std::as_writable_bytes(b.span()));
  };
  pair(host.x, device.x);
  pair(host.residual, device.residual);
  pair(host.y, device.y);
  pair(host.codes, device.codes);
  pair(host.scales, device.scales);
  pair(host.more, device.more);
  pair(host.indices, device.indices);
  pair(host.values, device.values);
  pair(host.count, device.count);
}

// Normal values of a gradient's size; a pattern of a million, repeated, so that it is soon made.
void FillNormal(Out x) {
  constexpr std::size_t kPattern = std::size_t{1} << 20;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 1e-3F);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = i < kPattern ? normal(random) : x[i - kPattern] * 1.0001F;
}

}  // namespace

Arrays::Arrays(const Sizes& sizes, Memory& memory)
    : x(sizes.x, memory),
      residual(sizes.residual, memory),
      y(sizes.y, memory),
      codes(sizes.codes, memory),
      scales(sizes.scales, memory),
      more(sizes.more, memory),
      indices(sizes.chosen, memory),
      values(sizes.chosen, memory),
      count(1, memory) {}

std::vector<CudaOperation> AllCudaOperations() {
  std::vector<CudaOperation> all;
  AddConversions(all);
  AddFloat8s(all, k::Float8::kE4M3, "e4m3");
  AddFloat8s(all, k::Float8::kE5M2, "e5m2");
  AddSigns(all);
  AddQuantizers(all);
  AddSelections(all);
  AddLowRank(all);
  AddPasses(all);
  return all;
}

CudaCase::CudaCase(const CudaOperation& operation, std::size_t n, CudaStream& stream)
    : operation_(operation),
      stream_(stream),
      host_(operation.sizes(n), HostMemory()),
      device_(operation.sizes(n), stream.memory()),
      scratch_(stream.memory()) {
  FillNormal(host_.x.span());
  Scratch scratch;
  if (operation.prepare) operation.prepare({}, scratch, host_);
  ForArrays(host_, device_, [&](auto host, auto device) {
    stream.memory().Write(device.data(), host.data(), host.size());
  });
}

bool CudaCase::MatchesCpu() {
  Scratch scratch;
  operation_.run({}, scratch, host_);
  Run();
  bool same = stream_.Wait().ok();
  ForArrays(host_, device_, [&](auto host, auto device) {
    std::vector<std::byte> found(device.size());
    stream_.memory().Read(found.data(), device.data(), device.size());
    same &= std::equal(found.begin(), found.end(), host.begin());
  });
  return same;
}

}  // namespace slimgrad::benchmarks
