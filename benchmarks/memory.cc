// The ceilings as operations.
#include <map>
#include <tuple>

#include "benchmarks/ceilings.h"
#include "benchmarks/operation.h"

namespace slimgrad::benchmarks {
namespace {

struct Memory {
  Memory(const Traffic& traffic, std::size_t n)
      : in(Bytes(traffic.read_bits, n)),
        residual(traffic.residual ? n : 0),
        out(Bytes(traffic.write_bits, n)) {
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      FillBytes(in[turn], 1);
      FillBytes(std::as_writable_bytes(residual[turn]), 3);
    }
  }

  // No line of zeros: some processors write those several times as fast as others.
  static void FillBytes(std::span<std::byte> to, std::size_t first) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::byte>(first + i % 251);
  }

  static std::size_t Bytes(int bits, std::size_t n) {
    return (n * static_cast<std::size_t>(bits) + 7) / 8;
  }

  Rotation<std::byte> in;
  Rotation<float> residual;
  Rotation<std::byte> out;
};

// The variants of one ceiling share their memory.
std::shared_ptr<Memory> MemoryOf(const Traffic& traffic, std::size_t n) {
  static std::map<std::pair<std::string_view, std::size_t>, std::weak_ptr<Memory>> all;
  std::weak_ptr<Memory>& place = all[{traffic.name, n}];
  std::shared_ptr<Memory> memory = place.lock();
  if (!memory) place = memory = std::make_shared<Memory>(traffic, n);
  return memory;
}

struct Ceiling final : Case {
  Ceiling(const Traffic& t, const Variant& v, std::size_t size)
      : traffic(t), variant(v), n(size), memory(MemoryOf(t, size)) {}

  void Run(const Backend& backend, std::size_t turn) override {
    MoveMemory(backend, traffic, variant, n, memory->in[turn], memory->residual[turn],
               memory->out[turn]);
  }
  Quality Check(const Backend&) override { return {}; }

  const Traffic& traffic;
  const Variant& variant;
  std::size_t n;
  std::shared_ptr<Memory> memory;
};

}  // namespace

void AddCeilings(Operations& operations) {
  for (const Traffic& traffic : kTraffics) {
    for (const Variant& variant : kVariants) {
      if (variant.stream && traffic.write_bits == 0) continue;  // nothing to stream
      operations.push_back(
          {"ceiling:" + std::string(traffic.name) + "/variant:" + std::string(variant.name), false,
           [&traffic, &variant](Data, std::size_t n) {
             return std::make_unique<Ceiling>(traffic, variant, n);
           }});
    }
  }
}

}  // namespace slimgrad::benchmarks
