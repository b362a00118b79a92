// Device functions that have no PTX: printf and a failed assert.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <string>

#include "tools/ptxrun/machine/exec.h"

namespace ptx {
namespace {

// The arguments lie behind each other, each aligned to its size.
class Arguments {
 public:
  explicit Arguments(const u8* at) : at_(at) {}
  u64 Next(unsigned bytes) {
    offset_ = RoundUp(offset_, bytes);
    u64 value = 0;
    std::memcpy(&value, at_ + offset_, bytes);
    offset_ += bytes;
    return value;
  }

 private:
  const u8* at_;
  u64 offset_ = 0;
};

// One conversion, `specification` being "%-8.3llu" or the like.
std::string Format(const std::string& specification, bool is_long, Arguments& arguments) {
  const char conversion = specification.back();
  const char* const format = specification.c_str();
  char text[256];
  if (std::strchr("feEgGaA", conversion))
    std::snprintf(text, sizeof text, format, DoubleOf(arguments.Next(8)));
  else if (conversion == 's')
    std::snprintf(text, sizeof text, format, PointerTo<const char>(arguments.Next(8)));
  else if (conversion == 'p')
    std::snprintf(text, sizeof text, "%p", PointerTo<void>(arguments.Next(8)));
  else if (is_long)
    std::snprintf(text, sizeof text, format, arguments.Next(8));
  else
    std::snprintf(text, sizeof text, format, static_cast<u32>(arguments.Next(4)));
  return text;
}

void Print(const char* format, Arguments arguments) {
  std::string out;
  while (*format) {
    if (*format != '%') {
      out += *format++;
      continue;
    }
    if (format[1] == '%') {
      out += '%';
      format += 2;
      continue;
    }
    std::string specification(1, *format++);
    while (*format && !std::isalpha(static_cast<unsigned char>(*format)))
      specification += *format++;
    bool is_long = false;
    while (*format == 'l' || *format == 'h' || *format == 'z') {
      is_long |= *format != 'h';
      specification += *format++;
    }
    if (!*format) break;
    specification += *format++;
    out += Format(specification, is_long, arguments);
  }
  std::fputs(out.c_str(), stdout);
}

}  // namespace

void CallBuiltin(const Lane& lane, const std::string& name, const Operand* arguments,
                 const Operand* rets) {
  const auto argument = [&](std::size_t k) {
    const Operand& operand = arguments->parts[k];
    if (operand.kind != Operand::Kind::kSymbol) return lane.Value(operand);
    u64 value = 0;
    std::memcpy(&value, lane.frame.params + operand.symbol->offset,
                std::min<u64>(8, operand.symbol->size));
    return value;
  };
  const auto text = [&](std::size_t k) { return PointerTo<const char>(argument(k)); };
  if (name == "__assertfail")
    lane.Fail(std::string("device assert failed: ") + text(0) + " at " + text(1) + ":" +
              std::to_string(static_cast<u32>(argument(2))));
  if (name != "vprintf") lane.Fail("call of an undefined function " + name);
  Print(text(0), Arguments(PointerTo<const u8>(argument(1))));
  if (!rets || rets->parts.empty() || rets->parts[0].kind != Operand::Kind::kSymbol) return;
  const Symbol& to = *rets->parts[0].symbol;
  const u64 result = 1;
  std::memcpy(lane.frame.params + to.offset, &result, std::min<u64>(8, to.size));
}

}  // namespace ptx
