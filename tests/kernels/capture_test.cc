// Kernels on a GPU in a captured graph: a capture runs nothing, and a replay does what the call
// would have done, on what the memory holds by then. One call of a kind is enough: what a capture
// forbids (waiting, allocating, reading the host's memory later) is a matter of the code, not of
// the input.
#ifdef SLIMGRAD_HAVE_CUDA

#include <cuda_runtime.h>

#include <functional>

#include "core/buffer.h"
#include "tests/kernels/inputs.h"
#include "tests/kernels/subject.h"

namespace slimgrad::kernels {
namespace {

// Enough for several blocks of threads, and no multiple of anything.
constexpr std::size_t kN = 20011;

// What a call has to work with, on the device.
struct Memories {
  explicit Memories(CudaStream& stream)
      : x(kN, stream.memory()),
        y(kN, stream.memory()),
        levels(2 * kN, stream.memory()),
        bytes(4 * kN, stream.memory()),
        number(1, stream.memory()) {}

  void Fill(std::uint32_t seed) {
    const std::vector<float> first = MakeInput(Pattern::kExponents, kN, seed);
    const std::vector<float> second = MakeInput(Pattern::kNormal, kN, seed + 1);
    x.memory().Write(x.data(), first.data(), kN * sizeof(float));
    x.memory().Write(y.data(), second.data(), kN * sizeof(float));
  }
  // All that a call may have written.
  std::vector<std::byte> Read() {
    std::vector<std::byte> all;
    const auto add = [&](const void* data, std::size_t size) {
      all.resize(all.size() + size);
      x.memory().Read(all.data() + all.size() - size, data, size);
    };
    add(y.data(), kN * sizeof(float));
    add(levels.data(), 2 * kN * sizeof(float));
    add(bytes.data(), 4 * kN);
    add(number.data(), sizeof(std::uint64_t));
    return all;
  }
  std::span<std::uint8_t> Bits() {
    return {reinterpret_cast<std::uint8_t*>(bytes.data()), BitBytes(kN)};
  }

  Buffer<float> x, y, levels;
  Buffer<std::byte> bytes;
  Buffer<std::uint64_t> number;
};

using Call = std::function<void(const Backend&, Memories&)>;

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

void ExpectReplaysTheCall(const char* name, const Call& call) {
  SCOPED_TRACE(name);
  CudaStream& stream = *SubjectStream();
  Memories direct(stream), captured(stream);
  captured.Fill(1);
  const std::vector<std::byte> before = captured.Read();
  Graph graph(stream, [&] { call(stream.backend(), captured); });
  EXPECT_TRUE(captured.Read() == before) << "the capture ran it";
  for (std::uint32_t seed : {2, 3}) {
    direct.Fill(seed);
    captured.Fill(seed);
    call(stream.backend(), direct);
    graph.Replay();
    EXPECT_TRUE(stream.Wait().ok());
    EXPECT_TRUE(captured.Read() == direct.Read()) << "replay of seed " << seed;
  }
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
    CountNonFinite(backend, {m.levels.data(), kN, DType::kF32, Device::kCuda}, m.number.data());
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
    FillRandom16(backend, {1, 2}, 3, {reinterpret_cast<std::uint16_t*>(m.bytes.data()), kN});
  });
}

TEST(CaptureTest, Signs) {
  for (std::size_t block : {std::size_t{256}, std::size_t{1001}, kN}) {
    ExpectReplaysTheCall("OneBitEncodeFeedback", [block](const Backend& backend, Memories& m) {
      const std::size_t blocks = BlockCount(kN, block);
      OneBitEncodeFeedback(backend, m.x.span(), m.y.span(), block, m.Bits(), m.levels.first(blocks),
                           m.levels.span().subspan(kN, blocks));
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
  Scratch scratch(SubjectStream()->memory());
  (void)ScratchScope(scratch).Take<std::byte>(std::size_t{1} << 20);  // none is allocated later
  for (std::size_t k : {kN / 100, kN / 2}) {
    const auto indices = [k](Memories& m) {
      return std::span(reinterpret_cast<std::uint32_t*>(m.bytes.data()), k);
    };
    ExpectReplaysTheCall("TopKFeedback", [&, k](const Backend& backend, Memories& m) {
      TopKFeedback(backend, scratch, m.x.span(), m.y.span(), indices(m), m.levels.first(k));
    });
    ExpectReplaysTheCall("TopK", [&, k](const Backend& backend, Memories& m) {
      TopK(backend, scratch, m.x.span(), indices(m), m.levels.first(k));
      EXPECT_TRUE(ScatterAdd(backend, indices(m), m.levels.first(k), 0.3F, m.y.span()).ok());
    });
    ExpectReplaysTheCall("ThresholdSelect", [&, k](const Backend& backend, Memories& m) {
      ThresholdSelect(backend, scratch, m.y.span(), 1.0F, indices(m), m.levels.first(k),
                      m.number.data());
    });
  }
}

}  // namespace
}  // namespace slimgrad::kernels

#endif  // SLIMGRAD_HAVE_CUDA
