// The parser's declarations of variables and registers, and operands.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "tools/ptxrun/ptx/names.h"
#include "tools/ptxrun/ptx/parser.h"

namespace ptx {
namespace {

bool IsNumber(const std::string& token) {
  return !token.empty() && std::isdigit(static_cast<unsigned char>(token[0])) != 0;
}

// Floats stand as their bits, after 0f or 0d.
u64 ToNumber(const std::string& token) {
  if (token.size() > 2 && token[0] == '0') {
    const char base = static_cast<char>(std::tolower(static_cast<unsigned char>(token[1])));
    if (base == 'f' || base == 'd') return std::strtoull(token.c_str() + 2, nullptr, 16);
    if (base == 'b') return std::strtoull(token.c_str() + 2, nullptr, 2);
  }
  return std::strtoull(token.c_str(), nullptr, 0);
}

i64 Negated(i64 value) { return static_cast<i64>(0 - static_cast<u64>(value)); }

}  // namespace

u64 ModuleParser::NextNumber() { return ToNumber(Next()); }

// After the space's token: [.align N] [.ptr ...] [.vN] .type name [ '[' N ']' ] [= init]
Symbol* ModuleParser::Variable(Space space, bool external) {
  module_.symbols.push_back(std::make_unique<Symbol>());
  Symbol* symbol = module_.symbols.back().get();
  symbol->space = space;
  const unsigned vec = VariableAttributes(*symbol);
  symbol->name = Next();
  u64 elements = 1;
  bool unsized = false;
  while (Eat("[")) {
    if (Eat("]")) {
      unsized = true;
      elements = 0;
    } else {
      elements *= NextNumber();
      Need("]");
    }
  }
  symbol->size = elements * Bytes(symbol->type) * vec;
  symbol->align = std::max<u64>(symbol->align, Bytes(symbol->type));
  symbol->dynamic = space == Space::kShared && unsized && external;
  if (Eat("=")) {
    symbol->init.resize(symbol->size);
    u64 offset = 0;
    Initialiser(*symbol, offset);
  }
  return symbol;
}

// Returns the number of elements of a vector type.
unsigned ModuleParser::VariableAttributes(Symbol& symbol) {
  unsigned vec = 1;
  while (Peek()[0] == '.') {
    const std::string attribute = Next();
    if (attribute == ".align") {
      symbol.align = NextNumber();
    } else if (attribute == ".attribute") {
      Need("(");
      SkipPast(")");
    } else if (attribute == ".v2") {
      vec = 2;
    } else if (attribute == ".v4") {
      vec = 4;
    } else if (TypeNamed(attribute.substr(1)) != Type::kNone) {
      symbol.type = TypeNamed(attribute.substr(1));
    }
  }
  return vec;
}

void ModuleParser::Initialiser(Symbol& symbol, u64& offset) {
  if (Eat("{")) {
    while (!Eat("}")) {
      Initialiser(symbol, offset);
      Eat(",");
    }
    return;
  }
  InitialValue(symbol, offset);
  offset += Bytes(symbol.type);
}

// A number, a name (whose address is meant) or generic(name), each with "+ N".
void ModuleParser::InitialValue(Symbol& symbol, u64 offset) {
  const bool negative = Eat("-");
  std::string token = Next();
  u64 value = 0;
  unsigned bytes = std::min(Bytes(symbol.type), 8U);
  if (IsNumber(token)) {
    value = ToNumber(token);
    if (negative) value = 0 - value;
  } else {
    if (token == "generic") {
      Need("(");
      token = Next();
      Need(")");
    }
    if (Eat("+")) value = NextNumber();
    bytes = 8;
    symbol.relocations.emplace_back(offset, token);
  }
  if (offset + bytes > symbol.init.size()) symbol.init.resize(offset + bytes);
  std::memcpy(&symbol.init[offset], &value, bytes);
}

void ModuleParser::Registers() {
  // every register has 64 bits here; a wider one is two
  const u32 words = Next() == ".b128" ? 2 : 1;
  do {
    const std::string name = Next();
    if (Eat("<")) {
      const u64 count = NextNumber();
      Need(">");
      for (u64 k = 0; k < count; k++) DefineRegister(name + std::to_string(k), words);
    } else {
      DefineRegister(name, words);
    }
  } while (Eat(","));
  Need(";");
}

void ModuleParser::DefineRegister(const std::string& name, u32 words) {
  Operand operand;
  operand.kind = Operand::Kind::kRegister;
  operand.reg = function_->registers;
  function_->registers += words;
  scopes_.back()[name] = operand;
}

void ModuleParser::DefineSymbol(Symbol* symbol) {
  Operand operand;
  operand.kind = Operand::Kind::kSymbol;
  operand.symbol = symbol;
  scopes_.back()[symbol->name] = operand;
}

const Operand* ModuleParser::Lookup(const std::string& name) const {
  for (std::size_t depth = scopes_.size(); depth > 0; depth--) {  // the innermost first
    const Scope& scope = scopes_[depth - 1];
    const auto found = scope.find(name);
    if (found != scope.end()) return &found->second;
  }
  return nullptr;
}

Operand ModuleParser::ReadOperand() {
  if (Eat("{")) return ReadList("}");
  if (Eat("(")) return ReadList(")");
  if (Eat("[")) return ReadAddress();
  if (Eat("!")) {
    Operand operand = ReadOperand();
    operand.inverted = true;
    return operand;
  }
  if (Eat("-")) {
    Operand operand = ReadOperand();
    operand.imm = Negated(operand.imm);
    return operand;
  }
  Operand operand = ReadAtom();
  if (operand.kind == Operand::Kind::kSymbol && Eat("+"))
    operand.imm += static_cast<i64>(NextNumber());
  return operand;
}

Operand ModuleParser::ReadList(const char* end) {
  Operand list;
  list.kind = Operand::Kind::kVector;
  while (!Eat(end)) {
    list.parts.push_back(ReadOperand());
    Eat(",");
  }
  return list;
}

Operand ModuleParser::ReadAddress() {
  Operand address = ReadAtom();
  while (!Eat("]")) {
    if (Eat("+")) {
      const bool negative = Eat("-");
      const i64 offset = static_cast<i64>(NextNumber());
      address.imm += negative ? Negated(offset) : offset;
    } else if (Eat("-")) {
      address.imm -= static_cast<i64>(NextNumber());
    } else if (Eat(",")) {
      ReadOperand();  // a tensor's coordinates: the instruction itself is refused
    } else {
      Fail("address");
    }
  }
  address.kind = Operand::Kind::kMemory;
  return address;
}

Operand ModuleParser::ReadAtom() {
  Operand operand;
  const std::string token = Next();
  if (IsNumber(token)) {
    operand.kind = Operand::Kind::kImmediate;
    operand.imm = static_cast<i64>(ToNumber(token));
  } else if (token == "_") {
    operand.kind = Operand::Kind::kNone;  // a result that nobody wants
  } else if (const auto special = SpecialNamed(token)) {
    operand.kind = Operand::Kind::kSpecial;
    operand.reg = static_cast<u32>(*special);
  } else if (const Operand* known = Lookup(token)) {
    operand = *known;
    operand.by_register = operand.IsRegister();
  } else {
    operand.kind = Operand::Kind::kLabel;
    operand.name = token;
  }
  return operand;
}

}  // namespace ptx
