// PTX text to a Module. Reads what nvcc writes; no more of the language.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tools/ptxrun/ptx/lexer.h"
#include "tools/ptxrun/ptx/module.h"

namespace ptx {

// Throws Error, with the line.
void ParseModule(const char* text, std::size_t bytes, Module& module);

// The parser's state, for its two source files: parser.cc has directives, functions and bodies,
// parser_operands.cc declarations of variables and operands.
class ModuleParser {
 public:
  ModuleParser(const char* text, std::size_t bytes, Module& module)
      : tokens_(Lex(text, bytes)), module_(module) {}
  void Run();

 private:
  using Scope = std::map<std::string, Operand>;

  // tokens
  [[noreturn]] void Fail(const std::string& what) const;
  const std::string& Peek() const;
  std::string Next();
  bool Eat(const char* text);
  void Need(const char* text);
  void SkipPast(const char* text);
  void SkipLine();
  u64 NextNumber();

  // parser.cc
  void ModuleDirective(const std::string& directive);
  void ModuleVariable(Space space);
  void SkipSection();
  void ReadFunction(bool entry);
  void FunctionDirective(const std::string& directive);
  std::vector<Symbol*> ParameterList();
  void LayOutParameters();
  void Body();
  bool Label();
  void BodyDirective();
  void BodyVariable(Space space);
  void Statement();
  void ResolveBranches();
  void ResolveCalls();

  // parser_operands.cc
  Symbol* Variable(Space space, bool external);
  unsigned VariableAttributes(Symbol& symbol);
  void Initialiser(Symbol& symbol, u64& offset);
  void InitialValue(Symbol& symbol, u64 offset);
  void Registers();
  void DefineRegister(const std::string& name, u32 words);
  void DefineSymbol(Symbol* symbol);
  const Operand* Lookup(const std::string& name) const;
  Operand ReadOperand();
  Operand ReadList(const char* end);
  Operand ReadAddress();
  Operand ReadAtom();

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Module& module_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  bool external_ = false;
};

}  // namespace ptx
