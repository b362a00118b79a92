// A compressor that runs wholly on a GPU gives the bits that it gives on the host: averages,
// states, payloads, counts, traffic. What one writes, the other reads. Damaged frames are refused.
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "kernels/cuda_stream.h"
#include "tests/conformance/harness.h"

namespace slimgrad::conformance {
namespace {

// One for the program: opening a device takes long.
CudaStream* Stream(std::string* why) {
  static const Result<std::unique_ptr<CudaStream>> stream = CudaStream::Open(0);
  if (!stream.ok()) *why = stream.status().message();
  return stream.ok() ? stream->get() : nullptr;
}

// A copy in a device's memory; the host reaches it by Values alone.
class OnDevice {
 public:
  OnDevice(In values, Memory& memory) : memory_(memory), buffer_(values.size(), memory) {
    memory_.Write(buffer_.data(), values.data(), values.size_bytes());
  }
  Out span() { return buffer_.span(); }
  Values values() const {
    Values values(buffer_.size());
    memory_.Read(values.data(), buffer_.data(), values.size() * sizeof(float));
    return values;
  }

 private:
  Memory& memory_;
  Buffer<float> buffer_;
};

// Ranks in lock step, with all that they own on a device.
class DeviceRanks {
 public:
  DeviceRanks(std::string_view spec, int world, const std::vector<TensorSpec>& tensors,
              CudaStream& stream)
      : stream_(stream), group_(world, stream.backend()) {
    auto exchange = Exchange::Create(group_, Make(spec), tensors, {.backend = stream.backend()});
    EXPECT_TRUE(exchange.ok()) << exchange.status().message();
    exchange_ = std::move(*exchange);
  }

  Status Step(const Gradients& gradients) {
    std::deque<OnDevice> memory;
    std::vector<std::vector<ConstView>> from(gradients.size());
    std::vector<std::vector<View>> to(gradients.size());
    averages_.clear();
    const auto put = [&](In values) -> Out {
      return memory.emplace_back(values, stream_.memory()).span();
    };
    for (std::size_t r = 0; r < gradients.size(); ++r)
      for (const Values& x : gradients[r]) {
        from[r].push_back({put(x).data(), x.size(), DType::kF32, Device::kCuda});
        to[r].push_back({put(Values(x.size(), NAN)).data(), x.size(), DType::kF32, Device::kCuda});
      }
    const std::vector<std::span<const ConstView>> from_rows(from.begin(), from.end());
    const std::vector<std::span<const View>> to_rows(to.begin(), to.end());
    const Status status = exchange_->Step(from_rows, to_rows, {});
    for (const auto& row : to) averages_.push_back(Read(row));
    return status;
  }

  const Gradients& averages() const { return averages_; }
  Exchange& exchange() { return *exchange_; }

 private:
  Row Read(const std::vector<View>& views) {
    Row row;
    for (const View& view : views) {
      row.emplace_back(view.numel);
      stream_.memory().Read(row.back().data(), view.data, view.numel * sizeof(float));
    }
    return row;
  }

  CudaStream& stream_;
  LockStepGroup group_;
  std::unique_ptr<Exchange> exchange_;
  Gradients averages_;
};

class DeviceTest : public ForEverySpec {
 protected:
  void SetUp() override {
    std::string why;
    stream_ = Stream(&why);
    if (stream_ == nullptr) GTEST_SKIP() << why;
  }
  CudaStream* stream_ = nullptr;
};

Bytestring StateFile(Exchange& exchange, std::size_t rank) {
  auto file = exchange.SaveState(rank);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return *file;
}

// Normal gradients, huge ones whose sums overflow, and tiny ones.
Gradients GradientsOf(std::span<const TensorSpec> tensors, int world, std::uint64_t step) {
  Gradients gradients = RandomGradients(tensors, world, step);
  constexpr std::array kScales = {1.0F, 1e37F, 1e-42F};
  for (Row& row : gradients)
    for (Values& values : row)
      for (float& value : values) {
        value *= kScales[step % kScales.size()];
        if (!std::isfinite(value)) value = 3e38F;
      }
  return gradients;
}

void ExpectSameStep(DeviceRanks& device, Ranks& host) {
  const StepReport& a = device.exchange().report();
  const StepReport& b = host.exchange().report();
  EXPECT_EQ(a.skipped, b.skipped);
  EXPECT_EQ(a.payload_bytes, b.payload_bytes);
  EXPECT_EQ(a.saturated, b.saturated);
  EXPECT_EQ(a.traffic.Total().sent, b.traffic.Total().sent);
  EXPECT_EQ(a.traffic.Total().received, b.traffic.Total().received);
  for (std::size_t r = 0; r < host.averages().size(); ++r)
    for (std::size_t t = 0; t < host.averages()[r].size(); ++t)
      EXPECT_TRUE(SameBits(device.averages()[r][t], host.averages()[r][t]))
          << "rank " << r << ", tensor " << t;
}

std::vector<TensorSpec> TensorsOfEveryKind() {
  return Tensors({{16, 18}, {97}, {3, 3}, {}, {0}, {5003}, {40, 60}});
}

TEST_P(DeviceTest, GivesTheBitsOfTheHost) {
  const std::vector<TensorSpec> tensors = TensorsOfEveryKind();
  for (const int world : {1, 2, 5}) {
    SCOPED_TRACE(std::to_string(world) + " ranks");
    DeviceRanks device(spec(), world, tensors, *stream_);
    Ranks host(spec(), world, tensors);
    for (std::uint64_t step = 0; step < 4; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const Gradients gradients = GradientsOf(tensors, world, step);
      const Status status = device.Step(gradients);
      ASSERT_TRUE(status.ok()) << status.message();
      host.MustStep(gradients);
      ExpectSameStep(device, host);
    }
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(world); ++rank)
      EXPECT_EQ(StateFile(device.exchange(), rank), StateFile(host.exchange(), rank));
  }
}

TEST_P(DeviceTest, AStateFileOfOneRestoresOnTheOther) {
  const std::vector<TensorSpec> tensors = UsualTensors();
  DeviceRanks device(spec(), 2, tensors, *stream_), resumed_device(spec(), 2, tensors, *stream_);
  Ranks host(spec(), 2, tensors), resumed_host(spec(), 2, tensors);
  for (std::uint64_t step = 0; step < 2; ++step) {
    ASSERT_TRUE(device.Step(RandomGradients(tensors, 2, step)).ok());
    host.MustStep(RandomGradients(tensors, 2, step));
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(
        resumed_host.exchange().RestoreState(rank, StateFile(device.exchange(), rank)).ok());
    ASSERT_TRUE(
        resumed_device.exchange().RestoreState(rank, StateFile(host.exchange(), rank)).ok());
  }
  const Gradients next = RandomGradients(tensors, 2, 2);
  ASSERT_TRUE(resumed_device.Step(next).ok());
  resumed_host.MustStep(next);
  ExpectSameStep(resumed_device, resumed_host);
}

TEST_P(DeviceTest, AStepThatIsNotFiniteIsSkippedAndChangesNothing) {
  const std::vector<TensorSpec> tensors = UsualTensors();
  DeviceRanks device(spec(), 2, tensors, *stream_);
  Gradients gradients = RandomGradients(tensors, 2, 0);
  ASSERT_TRUE(device.Step(gradients).ok());
  const std::size_t fields = device.exchange().SaveState(0)->size();
  const Bytestring before = StateFile(device.exchange(), 1);
  gradients[1][1][5] = NAN;
  ASSERT_TRUE(device.Step(gradients).ok());
  EXPECT_TRUE(device.exchange().report().skipped);
  EXPECT_EQ(device.exchange().report().skip_reason,
            "rank 1: gradient of tensor 't1' is not finite");
  EXPECT_TRUE(std::isnan(device.averages()[0][1][0]));  // untouched
  Ranks host(spec(), 2, tensors);
  host.MustStep(RandomGradients(tensors, 2, 0));
  ASSERT_TRUE(host.Step(gradients).ok());
  EXPECT_EQ(StateFile(device.exchange(), 0).size(), fields);
  EXPECT_EQ(StateFile(device.exchange(), 1), StateFile(host.exchange(), 1));
}

// A codec's payload, made in one memory and copied to the other.
Bytestring SectionsOf(const PayloadView& payload, Memory& memory) {
  Bytestring bytes;
  for (const Section& section : payload.sections()) {
    const std::size_t begin = bytes.size();
    bytes.resize(begin + section.bytes.size());
    memory.Read(bytes.data() + begin, section.bytes.data(), section.bytes.size());
  }
  return bytes;
}

// The same sections in a payload of another memory.
void CopySections(const PayloadView& from, Memory& from_memory, Memory& to_memory, Payload& to) {
  for (const Section& section : from.sections()) {
    Bytestring bytes(section.bytes.size());
    from_memory.Read(bytes.data(), section.bytes.data(), bytes.size());
    to_memory.Write(to.AddBytes(section.type, bytes.size()).data(), bytes.data(), bytes.size());
  }
}

std::size_t BytesOf(const Plan& plan, std::size_t n) {
  return plan.rounds[0].kind == Round::Kind::kGather ? plan.rounds[0].bound
                                                     : SectionBytesOf<float>(n);
}

TEST_P(DeviceTest, APayloadOfOneDecodesOnTheOther) {
  const Compressor compressor = Make(spec());
  if (!compressor.codec()) return;
  Memory& there = stream_->memory();
  for (const TensorSpec& tensor : TensorsOfEveryKind()) {
    SCOPED_TRACE(tensor.name);
    const Values x = RandomValues(tensor.numel(), 3);
    OneRank host(compressor, tensor);
    Scratch scratch(there);
    const Buffer<Counters> counters(1, there);
    Context device = host.context();
    device.backend = stream_->backend();
    device.scratch = &scratch;
    device.counters = counters.data();

    const std::size_t bytes = BytesOf(host.plan(), x.size());
    Buffer<std::byte> here_memory(bytes), there_memory(bytes, there), copy_here(bytes),
        copy_there(bytes, there);
    Payload made_here(here_memory.span()), made_there(there_memory.span(), Device::kCuda);
    OnDevice x_there(x, there);
    compressor.codec()->Encode(x, host.context(), made_here);
    compressor.codec()->Encode(x_there.span(), device, made_there);
    EXPECT_EQ(SectionsOf(made_there.view(), there), SectionsOf(made_here.view(), HostMemory()));

    Payload from_there(copy_here.span()), from_here(copy_there.span(), Device::kCuda);
    CopySections(made_there.view(), there, HostMemory(), from_there);
    CopySections(made_here.view(), HostMemory(), there, from_here);
    Values y(x.size(), 1.0F);
    OnDevice y_there(y, there);
    EXPECT_TRUE(compressor.codec()->DecodeAdd(from_there.view(), host.context(), 0.5F, y).ok());
    EXPECT_TRUE(compressor.codec()->DecodeAdd(from_here.view(), device, 0.5F, y_there.span()).ok());
    EXPECT_TRUE(stream_->Wait().ok());
    EXPECT_TRUE(SameBits(y_there.values(), y));
  }
}

SLIMGRAD_FOR_EVERY_SPEC(DeviceTest);

// A wire that damages rank 1's frames on the device.
class DamagedGroup final : public Group {
 public:
  DamagedGroup(int size, CudaStream& stream) : stream_(stream), inner_(size, stream.backend()) {}
  std::ptrdiff_t flip_byte = -1;
  std::size_t most_bytes = SIZE_MAX;

  int size() const override { return inner_.size(); }
  std::span<const int> local_ranks() const override { return inner_.local_ranks(); }
  bool TakesMessagesOn(const Backend& backend) const override {
    return inner_.TakesMessagesOn(backend);
  }
  Result<std::span<const Bytes>> AllGather(std::span<const Bytes> mine,
                                           TrafficRow& traffic) override {
    SLIMGRAD_ASSIGN_OR_RETURN(const std::span<const Bytes> all, inner_.AllGather(mine, traffic));
    if (flip_byte < 0 && most_bytes == SIZE_MAX) return all;
    views_.assign(all.begin(), all.end());
    Bytestring bytes(std::min(views_[1].size(), most_bytes));
    stream_.memory().Read(bytes.data(), views_[1].data(), bytes.size());
    if (flip_byte >= 0) bytes[static_cast<std::size_t>(flip_byte)] ^= std::byte{4};
    damaged_ = Buffer<std::byte>(bytes.size(), stream_.memory());
    stream_.memory().Write(damaged_.data(), bytes.data(), bytes.size());
    views_[1] = damaged_.span();
    return std::span<const Bytes>(views_);
  }
  Status AllCombine(kernels::CombineOp op, DType dtype, std::span<const Bytes> mine,
                    std::span<std::byte> result, TrafficRow& traffic) override {
    return inner_.AllCombine(op, dtype, mine, result, traffic);
  }

 private:
  CudaStream& stream_;
  LockStepGroup inner_;
  std::vector<Bytes> views_;
  Buffer<std::byte> damaged_;
};

class DamagedFrameTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    stream_ = Stream(&why);
    if (stream_ == nullptr) GTEST_SKIP() << why;
  }

  // A step of two ranks, whose gradients are zeros and so need no finite check.
  Status StepOf(const char* spec, std::ptrdiff_t flip_byte, std::size_t most_bytes) {
    const std::vector<TensorSpec> tensors = Tensors({{100}});
    DamagedGroup group(2, *stream_);
    auto exchange =
        Exchange::Create(group, Make(spec), tensors,
                         {.nonfinite = NonFinite::kTrusted, .backend = stream_->backend()});
    EXPECT_TRUE(exchange.ok()) << exchange.status().message();
    Buffer<float> gradient(100, stream_->memory()), average(100, stream_->memory());
    const ConstView from = {gradient.data(), 100, DType::kF32, Device::kCuda};
    const View to = {average.data(), 100, DType::kF32, Device::kCuda};
    const std::vector<std::span<const ConstView>> gradients(2, {&from, 1});
    const std::vector<std::span<const View>> averages(1, {&to, 1});
    EXPECT_TRUE((*exchange)->Step(gradients, averages, {}).ok());
    group.flip_byte = flip_byte;
    group.most_bytes = most_bytes;
    return (*exchange)->Step(gradients, averages, {});
  }
  CudaStream* stream_ = nullptr;
};

// Of the header of the frame and of the first section. What the host cannot see is found by the
// end of the step.
TEST_F(DamagedFrameTest, EveryByteOfAHeaderIsLookedAt) {
  for (const char* spec : {"top_k(ratio=0.1)", "top_k(ratio=0.1) | delta_index"})
    for (std::ptrdiff_t byte = 0; byte < 48 + 16; ++byte)
      EXPECT_EQ(StepOf(spec, byte, SIZE_MAX).code(), Code::kCorrupt) << spec << ", byte " << byte;
}

// An error that the host finds leaves none behind on the device: the next exchange is well.
TEST_F(DamagedFrameTest, AFrameThatIsCutSpoilsThisStepAlone) {
  for (const char* spec : {"top_k(ratio=0.1)", "top_k(ratio=0.1) | delta_index"})
    for (const std::size_t most : {0, 16, 48, 64, 80}) {
      EXPECT_EQ(StepOf(spec, -1, most).code(), Code::kCorrupt) << spec << ", " << most << " bytes";
      EXPECT_TRUE(stream_->Wait().ok());
    }
}

}  // namespace
}  // namespace slimgrad::conformance
