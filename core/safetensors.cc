#include "core/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/strict_json.h"

namespace slimgrad {
namespace {

using Json = nlohmann::json;
using Entry = SafetensorsEntry;

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and used where they are mapped");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::string_view kMetadataKey = "__metadata__";

Status Unexpected(const std::string& field, const std::string& expected, const std::string& found) {
  return Corrupt(field + ": expected " + expected + ", found " + found);
}

// The JSON text of the header.
Result<std::string_view> HeaderText(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes + 2) {
    return Unexpected("file size", "at least 10 bytes", std::to_string(file.size()) + " bytes");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  const std::uint64_t max = std::min<std::uint64_t>(kMaxHeaderBytes, file.size() - kLengthBytes);
  if (length < 2 || length > max) {
    return Unexpected("header length", "2 to " + std::to_string(max) + " bytes",
                      std::to_string(length));
  }
  if (length % 8 != 0)
    return Unexpected("header length", "a multiple of 8", std::to_string(length));
  return std::string_view(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
}

std::optional<std::uint64_t> AsCount(const Json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  return std::nullopt;
}

Result<DType> ReadDType(const Json& value) {
  if (value.is_string()) {
    if (const auto dtype = DTypeFromName(value.get_ref<const std::string&>())) return *dtype;
  }
  return Unexpected("dtype", "F64, F32, F16, BF16, I64, I32, I8, U64, U32, U16 or U8",
                    Describe(value));
}

Result<std::vector<std::int64_t>> ReadShape(const Json& value) {
  if (!value.is_array()) return Unexpected("shape", "an array of counts", Describe(value));
  TensorSpec spec;
  for (const Json& extent : value) {
    const auto count = AsCount(extent);
    if (!count || *count > static_cast<std::uint64_t>(INT64_MAX)) {
      return Unexpected("shape", "counts below 2^63", Describe(extent));
    }
    spec.shape.push_back(static_cast<std::int64_t>(*count));
  }
  if (!Validate(spec).ok())
    return Unexpected("shape", "fewer than 2^60 elements", ShapeText(spec.shape));
  return std::move(spec.shape);
}

// The tensor's part of `data`: inside it, of the size that shape and dtype ask for, and aligned.
Status ReadBytes(const Json& value, std::span<const std::byte> data, Entry& entry) {
  const auto at = [&](std::size_t i) { return AsCount(value[i]); };
  if (!value.is_array() || value.size() != 2 || !at(0) || !at(1)) {
    return Unexpected("data_offsets", "[begin, end]",
                      value.is_array() ? value.dump().substr(0, 64) : Describe(value));
  }
  const std::uint64_t begin = *at(0);
  const std::uint64_t end = *at(1);
  if (begin > end || end > data.size()) {
    return Unexpected("data_offsets", "begin <= end <= " + std::to_string(data.size()),
                      value.dump());
  }
  const TensorSpec spec{entry.name, entry.shape};
  const std::uint64_t want = std::uint64_t{spec.numel()} * SizeOf(entry.dtype);
  if (end - begin != want) {
    return Unexpected("data_offsets",
                      std::to_string(want) + " bytes for " + std::string(NameOf(entry.dtype)) +
                          " " + ShapeText(entry.shape),
                      std::to_string(end - begin));
  }
  if (begin % SizeOf(entry.dtype) != 0) {
    return Unexpected("data_offsets",
                      "a begin that is a multiple of " + std::to_string(SizeOf(entry.dtype)),
                      std::to_string(begin));
  }
  entry.bytes = data.subspan(begin, end - begin);
  return {};
}

Result<Entry> ReadEntry(const std::string& name, const Json& value,
                        std::span<const std::byte> data) {
  const char* const expected = "an object with dtype, shape and data_offsets";
  if (!value.is_object())
    return Corrupt(std::string("expected ") + expected + ", found " + Describe(value));
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(key)) return Unexpected(key, expected, "none");
  }
  for (const auto& [key, unused] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return Corrupt(std::string("expected ") + expected + ", found the key " + Quoted(key));
    }
  }
  Entry entry;
  entry.name = name;
  SLIMGRAD_ASSIGN_OR_RETURN(entry.dtype, ReadDType(value["dtype"]));
  SLIMGRAD_ASSIGN_OR_RETURN(entry.shape, ReadShape(value["shape"]));
  SLIMGRAD_RETURN_IF_ERROR(ReadBytes(value["data_offsets"], data, entry));
  return entry;
}

Result<SafetensorsMetadata> ReadMetadata(const Json& value) {
  if (!value.is_object())
    return Unexpected("__metadata__", "an object of strings", Describe(value));
  SafetensorsMetadata metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string())
      return Unexpected("__metadata__." + Quoted(key), "a string", Describe(text));
    metadata[key] = text.get_ref<const std::string&>();
  }
  return metadata;
}

// Entries, sorted by their place, cover the data from end to end.
Status CheckTiling(std::span<const Entry> entries, std::span<const std::byte> data) {
  std::uint64_t covered = 0;
  for (const Entry& entry : entries) {
    const auto begin = static_cast<std::uint64_t>(entry.bytes.data() - data.data());
    if (begin != covered) {
      return Unexpected(
          "tensor " + Quoted(entry.name) + ": data_offsets",
          "a begin of " + std::to_string(covered) + ", where the tensor before ends",
          std::to_string(begin) + (begin < covered ? " (they overlap)" : " (a hole)"));
    }
    covered += entry.bytes.size();
  }
  if (covered == data.size()) return {};
  return Unexpected("data size", std::to_string(covered) + " bytes, where the last tensor ends",
                    std::to_string(data.size()));
}

Result<Json> ReadHeader(std::span<const std::byte> file) {
  SLIMGRAD_ASSIGN_OR_RETURN(const std::string_view text, HeaderText(file));
  Result<Json> header = ParseStrictJson(text, 4);
  if (!header.ok()) return header.status().In("header");
  if (!header->is_object()) return Unexpected("header", "a JSON object", Describe(*header));
  return header;
}

}  // namespace

Result<Safetensors> Safetensors::Parse(std::span<const std::byte> file, std::string_view origin) {
  const Result<Json> header = ReadHeader(file);
  if (!header.ok()) return header.status().In(origin);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), kLengthBytes);
  const std::span<const std::byte> data = file.subspan(kLengthBytes + header_bytes);

  Safetensors result;
  for (const auto& [name, value] : header->items()) {
    if (name == kMetadataKey) {
      Result<SafetensorsMetadata> metadata = ReadMetadata(value);
      if (!metadata.ok()) return metadata.status().In(origin);
      result.metadata_ = std::move(metadata).value();
      continue;
    }
    Result<Entry> entry = ReadEntry(name, value, data);
    if (!entry.ok()) return entry.status().In("tensor " + Quoted(name)).In(origin);
    result.entries_.push_back(std::move(entry).value());
  }
  // An empty tensor lies before the one that begins at the same place.
  std::sort(result.entries_.begin(), result.entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tuple(a.bytes.data(), a.bytes.size(), std::string_view(a.name)) <
           std::tuple(b.bytes.data(), b.bytes.size(), std::string_view(b.name));
  });
  if (Status status = CheckTiling(result.entries_, data); !status.ok()) return status.In(origin);
  for (std::size_t i = 0; i < result.entries_.size(); ++i)
    result.index_.emplace(result.entries_[i].name, i);
  return result;
}

const Safetensors::Entry* Safetensors::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

namespace {

Status CheckEntry(const Entry& entry, std::set<std::string_view>& names) {
  const auto error = [&](const std::string& field, const std::string& expected,
                         const std::string& found) {
    return InvalidArgument("tensor " + Quoted(entry.name) + ": " + field + ": expected " +
                           expected + ", found " + found);
  };
  if (entry.name == kMetadataKey) return error("name", "a tensor's name", "the reserved one");
  if (!names.insert(entry.name).second) return error("name", "every name once", "it twice");
  if (SizeOf(entry.dtype) == 0)
    return error("dtype", "a known one", std::to_string(static_cast<int>(entry.dtype)));
  const TensorSpec spec{entry.name, entry.shape};
  SLIMGRAD_RETURN_IF_ERROR(Validate(spec));
  const std::size_t want = spec.numel() * SizeOf(entry.dtype);
  if (entry.bytes.size() != want)
    return error("bytes", std::to_string(want), std::to_string(entry.bytes.size()));
  return {};
}

// A JSON string, or kInvalidArgument when `text` is not UTF-8.
Result<std::string> Escaped(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::type_error&) {
    return InvalidArgument("name or metadata: expected UTF-8, found " + Quoted(text));
  }
}

Result<std::string> MetadataText(const SafetensorsMetadata& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    SLIMGRAD_ASSIGN_OR_RETURN(const std::string name, Escaped(key));
    SLIMGRAD_ASSIGN_OR_RETURN(const std::string content, Escaped(value));
    if (!text.empty()) text += ",";
    text.append(name).append(":").append(content);
  }
  return "\"__metadata__\":{" + text + "}";
}

// The header for entries whose data follows in the order of `order`; padded to a multiple of 8
// bytes.
Result<std::string> HeaderFor(std::span<const Entry> entries, std::span<const std::size_t> order,
                              const SafetensorsMetadata& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    SLIMGRAD_ASSIGN_OR_RETURN(const std::string part, MetadataText(metadata));
    text += part;
  }
  std::uint64_t offset = 0;
  for (const std::size_t i : order) {
    const Entry& entry = entries[i];
    SLIMGRAD_ASSIGN_OR_RETURN(const std::string name, Escaped(entry.name));
    const Json value = {{"dtype", NameOf(entry.dtype)},
                        {"shape", entry.shape},
                        {"data_offsets", {offset, offset + entry.bytes.size()}}};
    text += (text.size() > 1 ? "," : "") + name + ":" + value.dump();
    offset += entry.bytes.size();
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeaderBytes) {
    return InvalidArgument("header: expected at most 100000000 bytes, found " +
                           std::to_string(text.size()));
  }
  return text;
}

}  // namespace

Result<std::vector<std::byte>> SerializeSafetensors(std::span<const SafetensorsEntry> entries,
                                                    const SafetensorsMetadata& metadata) {
  std::set<std::string_view> names;
  std::size_t data_bytes = 0;
  for (const Entry& entry : entries) {
    SLIMGRAD_RETURN_IF_ERROR(CheckEntry(entry, names));
    data_bytes += entry.bytes.size();
  }
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return SizeOf(entries[a].dtype) > SizeOf(entries[b].dtype);
  });
  SLIMGRAD_ASSIGN_OR_RETURN(const std::string header, HeaderFor(entries, order, metadata));

  std::vector<std::byte> file;
  file.reserve(kLengthBytes + header.size() + data_bytes);
  const std::uint64_t length = header.size();
  const auto append = [&](const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    file.insert(file.end(), first, first + size);
  };
  append(&length, kLengthBytes);
  append(header.data(), header.size());
  for (const std::size_t i : order) append(entries[i].bytes.data(), entries[i].bytes.size());
  return file;
}

}  // namespace slimgrad
