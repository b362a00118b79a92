#include "sim/inspect.h"

#include <cmath>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "core/frame.h"
#include "core/mapped_file.h"
#include "core/safetensors.h"
#include "core/state_file.h"
#include "core/strict_json.h"
#include "kernels/sums.h"
#include "sim/inspect_text.h"
#include "sim/inspect_trace.h"
#include "sim/trace.h"

namespace slimgrad::sim {
namespace {

namespace fs = std::filesystem;

using Bytes = std::span<const std::byte>;

std::string_view TextOf(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool LooksLikeFrame(Bytes bytes) { return TextOf(bytes).starts_with("SGRF"); }

// A header length that a header can have, then JSON.
bool LooksLikeSafetensors(Bytes bytes) {
  if (bytes.size() < 9) return false;
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length <= 100'000'000 && bytes[8] == std::byte{'{'};
}

Result<std::string> DescribeFrames(Bytes bytes) {
  std::string text;
  std::size_t number = 0;
  for (Bytes rest = bytes; !rest.empty(); ++number) {
    const Result<Frame> frame = ReadFrame(rest);
    if (!frame.ok()) return frame.status().In(fmt::format("frame {}", number));
    text += number == 0 ? "" : "\n";
    text += Line("frame", fmt::format("{}, {} bytes", number, frame->bytes));
    text += Line("spec hash", fmt::format("{:016x}", frame->info.spec_hash));
    text += Line("elements", std::to_string(frame->info.numel));
    text += Line("step", std::to_string(frame->info.step));
    text += Line("round", std::to_string(frame->info.round));
    if (frame->info.numel > 0) {
      const double bits = 8 * static_cast<double>(frame->bytes);
      text += Line("payload", report::ThreeDigits(bits / static_cast<double>(frame->info.numel)) +
                                  " bits an element, header included");
    }
    std::vector<std::vector<std::string>> rows = {{"section", "dtype", "elements", "bytes"}};
    for (const Section& section : frame->payload.sections()) {
      rows.push_back({std::string(NameOf(section.type.tag)),
                      std::string(NameOf(section.type.dtype)), std::to_string(section.count()),
                      std::to_string(section.bytes.size())});
    }
    text += report::TextTable(std::move(rows));
    rest = rest.subspan(frame->bytes);
  }
  return text;
}

// The 2-norm of an fp32 field; a dash for codes and counters.
std::string NormText(const ConstView& view) {
  if (view.dtype != DType::kF32) return "-";
  return report::ThreeDigits(std::sqrt(kernels::SumSquares(Backend{}, view.As<float>())));
}

Result<std::string> DescribeState(const Safetensors& file, std::string_view origin) {
  SLIMGRAD_ASSIGN_OR_RETURN(const StateHeader header, ReadStateHeader(file, origin));
  std::string text = Line("state of", header.spec);
  text += Line("rank", fmt::format("{} of {}", header.rank, header.world));
  text += Line("next step", std::to_string(header.step));
  text += Line("seed", std::to_string(header.seed));
  std::vector<std::vector<std::string>> rows = {{"field", "dtype", "shape", "norm"}};
  for (const SafetensorsEntry& entry : file.entries()) {
    rows.push_back({entry.name, std::string(NameOf(entry.dtype)), ShapeText(entry.shape),
                    NormText(entry.view())});
  }
  return text + "\n" + report::TextTable(std::move(rows));
}

// "a text file" is what people pass by mistake most often.
std::string FoundText(Bytes bytes) {
  if (bytes.empty()) return "an empty file";
  return fmt::format("a file of {} bytes that starts with {}", bytes.size(),
                     Quoted(TextOf(bytes).substr(0, 16)));
}

Result<std::string> DescribeFile(const fs::path& path) {
  const std::string origin = path.string();
  SLIMGRAD_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const auto unknown = [&](const std::string& found) {
    return Unsupported(
        origin +
        ": expected the folder of a trace, a file of payload frames or a state file, "
        "found " +
        found);
  };
  if (LooksLikeFrame(file.bytes())) {
    Result<std::string> text = DescribeFrames(file.bytes());
    if (!text.ok()) return text.status().In(origin);
    return text;
  }
  if (!LooksLikeSafetensors(file.bytes())) return unknown(FoundText(file.bytes()));
  SLIMGRAD_ASSIGN_OR_RETURN(const Safetensors tensors, Safetensors::Parse(file.bytes(), origin));
  const auto format = tensors.metadata().find("format");
  if (format == tensors.metadata().end() || format->second != "slimgrad-state") {
    return unknown(
        fmt::format("a safetensors file of {} tensors that is no state", tensors.entries().size()));
  }
  return DescribeState(tensors, origin);
}

}  // namespace

Result<std::string> Inspect(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return DescribeFile(path);
  SLIMGRAD_ASSIGN_OR_RETURN(const Trace trace, Trace::Open(path));
  return DescribeTrace(trace);
}

}  // namespace slimgrad::sim
