// Kernels on a GPU in a captured graph: a capture runs nothing, and a replay does what the call
// would have done, on what the memory holds by then. One call of a kind is enough: what a capture
// forbids (waiting, allocating, reading the host's memory later) is a matter of the code, not of
// the input. Sums and DeltaEncode have no case: they return a number, and wait for it.
#ifdef SLIMGRAD_HAVE_CUDA

#include <cuda_runtime.h>

#include <functional>
#include <random>

#include "core/buffer.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

// Enough for several blocks of threads, and no multiple of anything.
constexpr std::size_t kN = 20011;
// A matrix of as many elements, or a few less.
constexpr std::size_t kRows = 127, kCols = 157, kRank = 4;
constexpr RandomKey kKey = {1, 2};

// What a call has to work with, on the device or on the host.
struct Memories {
  explicit Memories(Memory& memory)
      : x(kN, memory),
        y(kN, memory),
        levels(2 * kN, memory),
        bytes(4 * kN, memory),
        number(1, memory),
        scratch(memory) {
    (void)ScratchScope(scratch).Take<std::byte>(std::size_t{1} << 20);  // none is allocated later
  }

  void Fill(std::uint32_t seed) {
    Write(x, MakeInput(Pattern::kExponents, kN, seed));
    Write(y, MakeInput(Pattern::kNormal, kN, seed + 1));
    Write(levels, MakeInput(Pattern::kNormal, 2 * kN, seed + 2));
    std::vector<std::byte> noise(4 * kN);
    std::mt19937 random(seed);
    for (std::byte& byte : noise) byte = std::byte(random());
    Write(bytes, noise);
    Write(number, std::vector<std::uint64_t>{seed});
  }
  // All that a call may have written.
  std::vector<std::byte> Read() {
    std::vector<std::byte> all;
    const auto add = [&](const auto& from) {
      const std::size_t size = from.span().size_bytes();
      all.resize(all.size() + size);
      x.memory().Read(all.data() + all.size() - size, from.data(), size);
    };
    add(x);
    add(y);
    add(levels);
    add(bytes);
    add(number);
    return all;
  }

  template <class T>
  void Write(Buffer<T>& to, const std::vector<T>& from) {
    x.memory().Write(to.data(), from.data(), from.size() * sizeof(T));
  }
  // The first `count` of `bytes`, as a T each.
  template <class T>
  std::span<T> First(std::size_t count) {
    return {reinterpret_cast<T*>(bytes.data()), count};
  }
  std::span<std::uint8_t> Bits() { return First<std::uint8_t>(BitBytes(kN)); }
  // The second half of `levels`.
  Out MoreLevels() { return levels.span().subspan(kN); }

  Buffer<float> x, y, levels;
  Buffer<std::byte> bytes;
  Buffer<std::uint64_t> number;
  Scratch scratch;
};

// Runs on the memories' device.
using Call = std::function<void(const Backend&, Memories&)>;

// Fills memories anew.
using Prepare = std::function<void(Memories&, std::uint32_t seed)>;
void FillAll(Memories& memories, std::uint32_t seed) { memories.Fill(seed); }

class Graph {
 public:
  Graph(CudaStream& stream, const std::function<void()>& calls)
      : stream_(static_cast<cudaStream_t>(stream.handle())) {
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    calls();
    Check(cudaStreamEndCapture(stream_, &graph_));
    Check(cudaGraphInstantiate(&run_, graph_, 0));
  }
  ~Graph() {
    cudaGraphExecDestroy(run_);
    cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void Replay() { Check(cudaGraphLaunch(run_, stream_)); }

 private:
  static void Check(cudaError_t error) {
    ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
  }

  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t run_ = nullptr;
};

// The call itself, and then its replays on other inputs, leave what the CPU's leaves. The driver
// may load a kernel when it is first called, which is why the call comes before the capture.
void ExpectReplaysTheCall(const char* name, const Call& call, const Prepare& prepare = FillAll) {
  SCOPED_TRACE(name);
  CudaStream& stream = *SubjectStream();
  Memories host(HostMemory()), device(stream.memory());
  const auto expect_as_on_host = [&](std::uint32_t seed, const std::function<void()>& run) {
    prepare(host, seed);
    prepare(device, seed);
    call({}, host);
    run();
    const Status status = stream.Wait();
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(SameBits(device.Read(), host.Read())) << "with seed " << seed;
  };
  expect_as_on_host(1, [&] { call(stream.backend(), device); });
  prepare(device, 2);
  const std::vector<std::byte> before = device.Read();
  Graph graph(stream, [&] { call(stream.backend(), device); });
  EXPECT_TRUE(SameBits(device.Read(), before)) << "the capture ran it";
  for (const std::uint32_t seed : {2, 3}) expect_as_on_host(seed, [&] { graph.Replay(); });
}

TEST(CaptureTest, Elementwise) {
  ExpectReplaysTheCall("AddScaled", [](const Backend& backend, Memories& m) {
    AddScaled(backend, m.x.span(), 0.3F, m.y.span());
  });
  ExpectReplaysTheCall("Divide", [](const Backend& backend, Memories& m) {
    Divide(backend, 0x1p-127F, m.y.span(), m.number.data());
  });
  ExpectReplaysTheCall("CountNonFinite", [](const Backend& backend, Memories& m) {
    Fill(backend, kInf, m.levels.span());
    CountNonFinite(backend, {m.levels.data(), kN, DType::kF32, backend.device}, m.number.data());
  });
}

TEST(CaptureTest, Conversions) {
  ExpectReplaysTheCall("F32ToF16Feedback", [](const Backend& backend, Memories& m) {
    const auto codes = m.First<half_bits>(kN);
    F32ToF16Feedback(backend, m.x.span(), m.y.span(), codes, Overflow::kSaturate, m.number.data());
    F16DecodeAdd(backend, codes, 0.3F, m.MoreLevels());
  });
  ExpectReplaysTheCall("F32ToBF16", [](const Backend& backend, Memories& m) {
    const auto codes = m.First<bfloat16_bits>(kN);
    F32ToBF16(backend, m.x.span(), codes, Overflow::kSaturate, m.number.data());
    BF16ToF32(backend, codes, m.y.span());
    Copy(backend, m.x.span(), m.MoreLevels());
  });
  ExpectReplaysTheCall("F32ToF8Feedback", [](const Backend& backend, Memories& m) {
    const auto codes = m.First<std::uint8_t>(kN);
    F32ToF8Feedback(backend, Float8::kE4M3, m.x.span(), m.y.span(), codes, Overflow::kSaturate,
                    m.number.data());
    F8DecodeAdd(backend, Float8::kE4M3, codes, 0.3F, m.MoreLevels());
  });
}

TEST(CaptureTest, Combine) {
  // As parameters of the kernel, and by a table.
  for (std::size_t ranks : {2, 600}) {
    ExpectReplaysTheCall("Combine", [ranks](const Backend& backend, Memories& m) {
      const std::vector<std::span<const std::byte>> inputs(ranks, std::as_bytes(m.x.span()));
      Combine(backend, CombineOp::kMean, DType::kF32, inputs, std::as_writable_bytes(m.y.span()));
    });
  }
}

TEST(CaptureTest, RandomNumbers) {
  ExpectReplaysTheCall("FillRandom16", [](const Backend& backend, Memories& m) {
    FillRandom16(backend, kKey, 3, m.First<std::uint16_t>(kN));
  });
}

// Blocks of a warp's, of one block of threads and of several.
constexpr std::array<std::size_t, 3> kQuantizedBlocks = {128, 1002, 10002};

TEST(CaptureTest, Quantizers) {
  for (const std::size_t block : kQuantizedBlocks) {
    const std::size_t blocks = BlockCount(kN, block);
    ExpectReplaysTheCall("Int8EncodeFeedback", [=](const Backend& backend, Memories& m) {
      const auto codes = m.First<std::int8_t>(kN);
      const Out scales = m.levels.first(blocks);
      Int8EncodeFeedback(backend, m.x.span(), m.y.span(), block, Rounding::kStochastic, kKey, codes,
                         scales);
      Int8DecodeAdd(backend, codes, scales, block, 0.3F, m.MoreLevels());
    });
    ExpectReplaysTheCall("Int4EncodeFeedback", [=](const Backend& backend, Memories& m) {
      const auto codes = m.First<std::uint8_t>(Int4Bytes(kN));
      const Out scales = m.levels.first(blocks);
      Int4EncodeFeedback(backend, m.x.span(), m.y.span(), block, Rounding::kStochastic, kKey, codes,
                         scales);
      Int4DecodeAdd(backend, codes, scales, block, 0.3F, m.MoreLevels());
    });
  }
}

TEST(CaptureTest, Qsgd) {
  for (const std::size_t bucket : kQuantizedBlocks) {
    ExpectReplaysTheCall("QsgdEncodeFeedback", [=](const Backend& backend, Memories& m) {
      const auto codes = m.First<std::int8_t>(kN);
      const Out norms = m.levels.first(BlockCount(kN, bucket));
      QsgdEncodeFeedback(backend, m.x.span(), m.y.span(), bucket, 100, kKey, codes, norms);
      QsgdDecodeAdd(backend, codes, norms, bucket, 100, 0.3F, m.MoreLevels());
    });
  }
}

TEST(CaptureTest, Signs) {
  for (std::size_t block : {std::size_t{256}, std::size_t{1001}, kN}) {
    ExpectReplaysTheCall("OneBitEncodeFeedback", [block](const Backend& backend, Memories& m) {
      const std::size_t blocks = BlockCount(kN, block);
      OneBitEncodeFeedback(backend, m.x.span(), m.y.span(), block, m.Bits(), m.levels.first(blocks),
                           m.MoreLevels().first(blocks));
    });
    ExpectReplaysTheCall("ScaledSignEncode", [block](const Backend& backend, Memories& m) {
      const Out scale = m.levels.first(BlockCount(kN, block));
      ScaledSignEncode(backend, m.x.span(), block, m.Bits(), scale);
      ScaledSignDecodeAdd(backend, m.Bits(), scale, block, 0.3F, m.y.span());
    });
  }
}

// Of a length with a sample, k small beside it and not.
TEST(CaptureTest, Selection) {
  for (const std::size_t k : {kN / 100, kN / 2}) {
    ExpectReplaysTheCall("TopKFeedback", [k](const Backend& backend, Memories& m) {
      TopKFeedback(backend, m.scratch, m.x.span(), m.y.span(), m.First<std::uint32_t>(k),
                   m.levels.first(k));
    });
    ExpectReplaysTheCall("TopK", [k](const Backend& backend, Memories& m) {
      const auto indices = m.First<std::uint32_t>(k);
      TopK(backend, m.scratch, m.x.span(), indices, m.levels.first(k));
      EXPECT_TRUE(ScatterAdd(backend, indices, m.levels.first(k), 0.3F, m.y.span()).ok());
    });
    ExpectReplaysTheCall("ThresholdSelect", [k](const Backend& backend, Memories& m) {
      ThresholdSelect(backend, m.scratch, m.y.span(), 1.0F, m.First<std::uint32_t>(k),
                      m.levels.first(k), m.number.data());
    });
  }
}

TEST(CaptureTest, LowRank) {
  const auto matrix = [](Buffer<float>& buffer) { return buffer.first(kRows * kCols); };
  const auto p = [](Memories& m) { return m.levels.first(kRows * kRank); };
  const auto q = [](Memories& m) { return m.MoreLevels().first(kCols * kRank); };
  ExpectReplaysTheCall("MultiplyRightFeedback", [=](const Backend& backend, Memories& m) {
    MultiplyRightFeedback(backend, m.scratch, matrix(m.x), matrix(m.y), kRows, kCols, q(m), kRank,
                          p(m));
  });
  ExpectReplaysTheCall("MultiplyLeft", [=](const Backend& backend, Memories& m) {
    MultiplyLeft(backend, m.scratch, matrix(m.x), kRows, kCols, p(m), kRank, q(m));
  });
  ExpectReplaysTheCall("OuterFeedback", [=](const Backend& backend, Memories& m) {
    OuterFeedback(backend, m.scratch, p(m), q(m), kRows, kCols, kRank, matrix(m.x), matrix(m.y));
  });
  ExpectReplaysTheCall("Orthonormalize", [=](const Backend& backend, Memories& m) {
    Orthonormalize(backend, m.scratch, kRows, kRank, kKey, p(m));
  });
}

// Codes of the same length for every seed, since a replay has the lengths of its capture.
std::vector<std::uint8_t> CodeOf(std::uint32_t seed, std::vector<std::uint32_t>& indices) {
  constexpr std::array<std::uint32_t, 4> kGaps = {0, 127, 128, 16384};
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[i] = next + kGaps[(i + seed) % kGaps.size()];
    next = indices[i] + 1;
  }
  std::vector<std::uint8_t> code(DeltaBound(indices.size()));
  code.resize(DeltaEncode({}, indices, code));
  return code;
}

TEST(CaptureTest, IndexCode) {
  constexpr std::size_t kIndices = 8000;
  std::vector<std::uint32_t> indices(kIndices);
  const std::size_t size = CodeOf(0, indices).size();
  ExpectReplaysTheCall(
      "DeltaDecode",
      [=](const Backend& backend, Memories& m) {
        const std::span decoded(reinterpret_cast<std::uint32_t*>(m.levels.data()), kIndices);
        EXPECT_TRUE(DeltaDecode(backend, m.First<std::uint8_t>(size), decoded).ok());
      },
      [&](Memories& m, std::uint32_t seed) {
        m.Fill(seed);
        const std::vector<std::uint8_t> code = CodeOf(seed, indices);
        ASSERT_EQ(code.size(), size);
        m.x.memory().Write(m.bytes.data(), code.data(), size);
      });
}

TEST(CaptureTest, Stamps) {
  Stamps stamps;
  for (; stamps.count < stamps.stamps.size(); ++stamps.count) {
    Stamp& stamp = stamps.stamps[stamps.count];
    stamp.offset = 1001 * stamps.count;
    stamp.size = stamp.bytes.size() - stamps.count;
    stamp.bytes.fill(std::byte(stamps.count));
  }
  ExpectReplaysTheCall("WriteStamps", [=](const Backend& backend, Memories& m) {
    CheckStamps(backend, stamps, m.bytes.span(), m.number.data());
    WriteStamps(backend, stamps, m.bytes.span());
  });
}

}  // namespace
}  // namespace slimgrad::kernels

#endif  // SLIMGRAD_HAVE_CUDA
