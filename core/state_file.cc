#include "core/state_file.h"

#include <charconv>
#include <deque>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/hash.h"

namespace slimgrad {
namespace {

constexpr std::string_view kFormat = "slimgrad-state";

std::string HexText(std::uint64_t value) { return fmt::format("{:016x}", value); }

// One field in memory, under the name that it has in the file.
struct Field {
  std::string name;
  DType dtype;
  std::span<std::byte> bytes;
  Memory* memory;  // where they lie
};

std::vector<Field> FieldsOf(std::span<const TensorState> states) {
  struct Collector final : FieldVisitor {
    void Field(const std::string& path, DType dtype, std::span<std::byte> bytes,
               Memory& memory) override {
      fields.push_back({tensor + "::" + path, dtype, bytes, &memory});
    }
    std::string tensor;
    std::vector<slimgrad::Field> fields;
  } collector;
  for (const TensorState& state : states) {
    collector.tensor = state.tensor->name;
    state.state->Fields(collector);
  }
  return std::move(collector.fields);
}

std::span<const std::byte> OnHost(const Field& field, std::deque<Buffer<std::byte>>& copies) {
  if (field.memory->device() == Device::kCpu) return field.bytes;
  Buffer<std::byte>& copy = copies.emplace_back(field.bytes.size());
  field.memory->Read(copy.data(), field.bytes.data(), field.bytes.size());
  return copy.span();
}

// kInvalidArgument when a name is not UTF-8.
Result<std::string> TensorsText(std::span<const TensorState> states) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const TensorState& state : states)
    tensors.push_back({{"name", state.tensor->name},
                       {"shape", state.tensor->shape},
                       {"range", {0, state.tensor->numel()}}});
  try {
    return tensors.dump();
  } catch (const nlohmann::json::type_error&) {
    return InvalidArgument("state: tensors: expected names in UTF-8, found another");
  }
}

// By name: the order in the file is its writer's affair.
std::uint64_t Checksum(std::span<const SafetensorsEntry> entries) {
  std::map<std::string_view, const SafetensorsEntry*> sorted;
  for (const SafetensorsEntry& entry : entries) sorted.emplace(entry.name, &entry);
  Hasher hasher;
  for (const auto& [name, entry] : sorted) {
    hasher.Add(std::uint64_t{name.size()}).Add(name);
    hasher.Add(static_cast<std::uint64_t>(entry->dtype)).Add(std::uint64_t{entry->shape.size()});
    for (const std::int64_t extent : entry->shape) hasher.Add(static_cast<std::uint64_t>(extent));
    hasher.Add(Hash64(entry->bytes));
  }
  return hasher.Digest();
}

std::string MetadataChecksum(const SafetensorsMetadata& metadata,
                             std::span<const SafetensorsEntry> entries) {
  Hasher hasher;
  for (const auto& [key, value] : metadata)
    if (key != "checksum")
      hasher.Add(std::uint64_t{key.size()}).Add(key).Add(std::uint64_t{value.size()}).Add(value);
  return HexText(hasher.Add(Checksum(entries)).Digest());
}

class Metadata {
 public:
  Metadata(const SafetensorsMetadata& values, std::string_view origin)
      : values_(values), origin_(origin) {}

  Result<std::string> Text(const std::string& key) const {
    const auto it = values_.find(key);
    if (it == values_.end())
      return Corrupt(fmt::format("{}: __metadata__: expected '{}', found none", origin_, key));
    return it->second;
  }

  Result<std::uint64_t> Number(const std::string& key) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const std::string text, Text(key));
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
      return Corrupt(fmt::format("{}: {}: expected a count, found '{}'", origin_, key, text));
    return value;
  }

  Status Expect(const std::string& key, std::string_view expected) const {
    SLIMGRAD_ASSIGN_OR_RETURN(const std::string found, Text(key));
    if (found == expected) return {};
    return Corrupt(fmt::format("{}: {}: expected '{}', found '{}'", origin_, key, expected, found));
  }

 private:
  const SafetensorsMetadata& values_;
  std::string_view origin_;
};

template <class T>
Status CheckSame(std::string_view origin, std::string_view field, const T& expected,
                 const T& found) {
  if (expected == found) return {};
  return Mismatch(fmt::format("{}: {}: expected {}, found {}", origin, field, expected, found));
}

Status CheckHeader(std::string_view origin, const StateHeader& expected, const StateHeader& found) {
  SLIMGRAD_RETURN_IF_ERROR(CheckSame(origin, "spec", expected.spec, found.spec));
  SLIMGRAD_RETURN_IF_ERROR(CheckSame(origin, "rank", expected.rank, found.rank));
  SLIMGRAD_RETURN_IF_ERROR(CheckSame(origin, "world", expected.world, found.world));
  return CheckSame(origin, "seed", expected.seed, found.seed);
}

Status CheckFields(const Safetensors& file, std::string_view origin,
                   std::span<const Field> fields) {
  for (const Field& field : fields) {
    const SafetensorsEntry* entry = file.Find(field.name);
    if (!entry)
      return Mismatch(fmt::format("{}: expected a field '{}', found none", origin, field.name));
    SLIMGRAD_RETURN_IF_ERROR(
        CheckSame(origin, field.name + ": dtype", NameOf(field.dtype), NameOf(entry->dtype)));
    SLIMGRAD_RETURN_IF_ERROR(
        CheckSame(origin, field.name + ": bytes", field.bytes.size(), entry->bytes.size()));
  }
  return CheckSame(origin, "fields", fields.size(), file.entries().size());
}

}  // namespace

Result<std::vector<std::byte>> SerializeState(const StateHeader& header,
                                              std::span<const TensorState> states) {
  std::vector<SafetensorsEntry> entries;
  std::deque<Buffer<std::byte>> copies;  // of what lies on a device
  for (const Field& field : FieldsOf(states))
    entries.push_back({field.name,
                       field.dtype,
                       {static_cast<std::int64_t>(field.bytes.size() / SizeOf(field.dtype))},
                       OnHost(field, copies)});
  SLIMGRAD_ASSIGN_OR_RETURN(const std::string tensors, TensorsText(states));
  SafetensorsMetadata metadata = {{"format", std::string(kFormat)},
                                  {"version", std::to_string(kStateVersion)},
                                  {"spec", header.spec},
                                  {"spec_hash", HexText(Hash64(header.spec))},
                                  {"rank", std::to_string(header.rank)},
                                  {"world", std::to_string(header.world)},
                                  {"step", std::to_string(header.step)},
                                  {"seed", std::to_string(header.seed)},
                                  {"tensors", tensors}};
  metadata["checksum"] = MetadataChecksum(metadata, entries);
  return SerializeSafetensors(entries, metadata);
}

Result<StateHeader> ReadStateHeader(const Safetensors& file, std::string_view origin) {
  const Metadata metadata(file.metadata(), origin);
  SLIMGRAD_RETURN_IF_ERROR(metadata.Expect("format", kFormat));
  SLIMGRAD_RETURN_IF_ERROR(metadata.Expect("version", std::to_string(kStateVersion)));
  SLIMGRAD_RETURN_IF_ERROR(
      metadata.Expect("checksum", MetadataChecksum(file.metadata(), file.entries())));
  StateHeader header;
  SLIMGRAD_ASSIGN_OR_RETURN(header.spec, metadata.Text("spec"));
  SLIMGRAD_RETURN_IF_ERROR(metadata.Expect("spec_hash", HexText(Hash64(header.spec))));
  SLIMGRAD_ASSIGN_OR_RETURN(header.rank, metadata.Number("rank"));
  SLIMGRAD_ASSIGN_OR_RETURN(header.world, metadata.Number("world"));
  SLIMGRAD_ASSIGN_OR_RETURN(header.step, metadata.Number("step"));
  SLIMGRAD_ASSIGN_OR_RETURN(header.seed, metadata.Number("seed"));
  return header;
}

Result<StateHeader> DeserializeState(std::span<const std::byte> file, std::string_view origin,
                                     const StateHeader& expected,
                                     std::span<const TensorState> states) {
  SLIMGRAD_ASSIGN_OR_RETURN(const Safetensors parsed, Safetensors::Parse(file, origin));
  SLIMGRAD_ASSIGN_OR_RETURN(StateHeader header, ReadStateHeader(parsed, origin));
  SLIMGRAD_RETURN_IF_ERROR(CheckHeader(origin, expected, header));
  SLIMGRAD_ASSIGN_OR_RETURN(const std::string tensors,
                            Metadata(parsed.metadata(), origin).Text("tensors"));
  SLIMGRAD_ASSIGN_OR_RETURN(const std::string expected_tensors, TensorsText(states));
  SLIMGRAD_RETURN_IF_ERROR(CheckSame(origin, "tensors", expected_tensors, tensors));
  const std::vector<Field> fields = FieldsOf(states);
  SLIMGRAD_RETURN_IF_ERROR(CheckFields(parsed, origin, fields));
  for (const Field& field : fields)
    field.memory->Write(field.bytes.data(), parsed.Find(field.name)->bytes.data(),
                        field.bytes.size());
  return header;
}

}  // namespace slimgrad
