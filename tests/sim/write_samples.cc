// write_samples FOLDER: a file of payload frames and a state file, for the test of the command.
#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "comm/exchange.h"
#include "comm/lock_step_group.h"
#include "compressors/api/registry.h"
#include "core/atomic_file.h"
#include "core/frame.h"

namespace slimgrad {
namespace {

Status WriteFrames(const std::filesystem::path& path) {
  std::vector<std::byte> file;
  for (const std::uint64_t step : {7, 8}) {
    alignas(16) std::array<std::byte, 512> memory;
    Payload payload{FrameBody(memory)};
    payload.Add<std::uint32_t>(Tag::kIndex, 3)[0] = 1;
    payload.Add<float>(Tag::kValue, 3)[0] = 2.5F;
    const auto frame = SealFrame(memory, payload, {0x0123456789ABCDEF, 1000, step, 0});
    file.insert(file.end(), frame.begin(), frame.end());
  }
  return WriteFileAtomically(path, file);
}

Status WriteState(const std::filesystem::path& path) {
  LockStepGroup group(2, {});
  SLIMGRAD_ASSIGN_OR_RETURN(Compressor compressor, MakeCompressor("error_feedback(top_k(k=1))"));
  SLIMGRAD_ASSIGN_OR_RETURN(const auto exchange,
                            Exchange::Create(group, compressor, {{"w", {2}}}, {.seed = 5}));
  const std::array<float, 2> values = {3, 4};
  std::array<float, 2> mean = {};
  const ConstView gradient{In(values)};
  const View average{Out(mean)};
  const std::array<std::span<const ConstView>, 2> gradients = {{{&gradient, 1}, {&gradient, 1}}};
  const std::span<const View> averages(&average, 1);
  SLIMGRAD_RETURN_IF_ERROR(exchange->Step(gradients, {&averages, 1}, {}));
  SLIMGRAD_ASSIGN_OR_RETURN(const std::vector<std::byte> file, exchange->SaveState(1));
  return WriteFileAtomically(path, file);
}

}  // namespace
}  // namespace slimgrad

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  return slimgrad::WriteFrames(folder / "frames").ok() &&
                 slimgrad::WriteState(folder / "state").ok()
             ? 0
             : 1;
}
