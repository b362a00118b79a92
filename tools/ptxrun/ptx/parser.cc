// The parser's directives, functions and bodies.
#include "tools/ptxrun/ptx/parser.h"

#include <cstdlib>
#include <utility>

#include "tools/ptxrun/ptx/decode.h"

namespace ptx {

void ParseModule(const char* text, std::size_t bytes, Module& module) {
  ModuleParser(text, bytes, module).Run();
}

void ModuleParser::Fail(const std::string& what) const {
  const bool inside = at_ < tokens_.size();
  throw Error("PTX line " + std::to_string(inside ? tokens_[at_].line : -1) + ": " + what +
              " near '" + (inside ? tokens_[at_].text : "") + "'");
}

const std::string& ModuleParser::Peek() const {
  static const std::string nothing;
  return at_ < tokens_.size() ? tokens_[at_].text : nothing;
}

std::string ModuleParser::Next() {
  if (at_ >= tokens_.size()) Fail("end of file");
  return tokens_[at_++].text;
}

bool ModuleParser::Eat(const char* text) {
  if (Peek() != text) return false;
  at_++;
  return true;
}

void ModuleParser::Need(const char* text) {
  if (!Eat(text)) Fail(std::string("expected ") + text);
}

void ModuleParser::SkipPast(const char* text) {
  while (Next() != text) {
  }
}

void ModuleParser::SkipLine() {
  const int line = tokens_[at_ - 1].line;
  while (at_ < tokens_.size() && tokens_[at_].line == line) at_++;
}

void ModuleParser::Run() {
  scopes_.emplace_back();
  while (at_ < tokens_.size()) ModuleDirective(Next());
  ResolveCalls();
}

void ModuleParser::ModuleDirective(const std::string& directive) {
  if (directive == ".version" || directive == ".address_size") {
    at_++;
  } else if (directive == ".target") {
    module_.sm = std::atoi(Next().c_str() + 3);  // sm_NN
    while (Eat(",")) at_++;
  } else if (directive == ".extern") {
    external_ = true;
  } else if (directive == ".visible" || directive == ".weak" || directive == ".common") {
    // one module is all that is ever linked
  } else if (directive == ".global") {
    ModuleVariable(Space::kGlobal);
  } else if (directive == ".const") {
    ModuleVariable(Space::kConst);
  } else if (directive == ".shared") {
    ModuleVariable(Space::kShared);
  } else if (directive == ".entry" || directive == ".func") {
    ReadFunction(directive == ".entry");
    external_ = false;
  } else if (directive == ".file") {
    SkipLine();
  } else if (directive == ".section") {
    SkipSection();
  } else if (directive == ".alias" || directive == ".pragma") {
    SkipPast(";");
  } else {
    at_--;
    Fail("directive");
  }
}

void ModuleParser::ModuleVariable(Space space) {
  Symbol* symbol = Variable(space, external_);
  Need(";");
  DefineSymbol(symbol);
  module_.globals[symbol->name] = symbol;
  external_ = false;
  if (space == Space::kShared && !symbol->dynamic) {
    symbol->offset = RoundUp(module_.shared_bytes, symbol->align);
    module_.shared_bytes = symbol->offset + symbol->size;
  }
}

// Debug information.
void ModuleParser::SkipSection() {
  SkipPast("{");
  for (int depth = 1; depth > 0;) {
    const std::string token = Next();
    if (token == "{") depth++;
    if (token == "}") depth--;
  }
}

void ModuleParser::ReadFunction(bool entry) {
  scopes_.emplace_back();
  std::vector<Symbol*> rets, params;
  if (!entry && Peek() == "(") rets = ParameterList();
  const std::string name = Next();
  if (Peek() == "(") params = ParameterList();
  auto& owner = module_.functions[name];
  if (!owner) owner = std::make_unique<Function>();
  function_ = owner.get();
  function_->name = name;
  function_->entry = entry;
  function_->module = &module_;
  while (Peek() != "{" && Peek() != ";") FunctionDirective(Next());
  if (Eat(";")) {  // a declaration
    scopes_.pop_back();
    return;
  }
  function_->params = std::move(params);
  function_->rets = std::move(rets);
  function_->defined = true;
  function_->shared_bytes = 0;
  LayOutParameters();
  Body();
  scopes_.pop_back();
  ResolveBranches();
}

void ModuleParser::FunctionDirective(const std::string& directive) {
  if (directive == ".maxntid" || directive == ".reqntid") {
    int threads = static_cast<int>(NextNumber());
    while (Eat(",")) threads *= static_cast<int>(NextNumber());
    function_->max_threads = threads;
  } else if (directive == ".minnctapersm" || directive == ".maxnreg" ||
             directive == ".maxclusterrank") {
    at_++;
  } else if (directive == ".reqnctapercluster") {
    function_->cluster = true;
    at_++;
    while (Eat(",")) at_++;
  } else if (directive == ".explicitcluster") {
    function_->cluster = true;
  } else if (directive != ".noreturn" && directive != ".pragma" &&
             directive != ".blocksareclusters" && directive != ".abi_preserve") {
    Fail("function directive " + directive);
  }
}

std::vector<Symbol*> ModuleParser::ParameterList() {
  std::vector<Symbol*> list;
  Need("(");
  while (!Eat(")")) {
    const std::string directive = Next();
    if (directive != ".param" && directive != ".reg") Fail("param");
    list.push_back(Variable(Space::kParam, false));
    DefineSymbol(list.back());
    Eat(",");
  }
  return list;
}

void ModuleParser::LayOutParameters() {
  u64 offset = 0;
  for (const auto* list : {&function_->params, &function_->rets}) {
    for (Symbol* symbol : *list) {
      symbol->offset = RoundUp(offset, symbol->align);
      offset = symbol->offset + symbol->size;
    }
  }
  function_->param_bytes = offset;
}

void ModuleParser::Body() {
  Need("{");
  scopes_.emplace_back();
  for (int depth = 1; depth > 0;) {
    if (Eat("{")) {
      depth++;
      scopes_.emplace_back();
    } else if (Eat("}")) {
      depth--;
      scopes_.pop_back();
    } else if (Peek()[0] == '.') {
      BodyDirective();
    } else if (!Eat(";") && !Label()) {
      Statement();
    }
  }
  Instruction ret;
  ret.op = Op::kRet;
  function_->code.push_back(std::move(ret));
}

bool ModuleParser::Label() {
  if (at_ + 1 >= tokens_.size() || tokens_[at_ + 1].text != ":" || Peek()[0] == '@') return false;
  const std::string name = Next();
  at_++;
  if (Eat(".branchtargets")) {
    auto& targets = function_->targets[name];
    do targets.push_back(Next());
    while (Eat(","));
    Need(";");
  } else if (Peek() == ".callprototype" || Peek() == ".calltargets") {
    SkipPast(";");
  } else {
    function_->labels[name] = static_cast<int>(function_->code.size());
  }
  return true;
}

void ModuleParser::BodyDirective() {
  std::string directive = Next();
  for (const char* word : {".reg", ".shared", ".local", ".param"}) {
    // ".reg.b32 x", without a space
    if (directive.rfind(word + std::string("."), 0) == 0) {
      const std::size_t dot = directive.find('.', 1);
      tokens_[--at_].text = directive.substr(dot);
      directive = word;
    }
  }
  if (directive == ".reg") {
    Registers();
  } else if (directive == ".shared") {
    BodyVariable(Space::kShared);
  } else if (directive == ".local") {
    BodyVariable(Space::kLocal);
  } else if (directive == ".param") {
    BodyVariable(Space::kParam);
  } else if (directive == ".loc") {
    SkipLine();
  } else if (directive == ".pragma") {
    SkipPast(";");
  } else {
    at_--;
    Fail("directive");
  }
}

void ModuleParser::BodyVariable(Space space) {
  Symbol* symbol = Variable(space, false);
  Need(";");
  DefineSymbol(symbol);
  // A device function's shared variables are laid out like the module's: any entry may call it.
  const bool entry_shared = space == Space::kShared && function_->entry;
  u64& size = space == Space::kLocal   ? function_->local_bytes
              : space == Space::kParam ? function_->param_bytes
              : entry_shared           ? function_->shared_bytes
                                       : module_.shared_bytes;
  symbol->offset = RoundUp(size, symbol->align);
  size = symbol->offset + symbol->size;
  if (entry_shared) symbol->offset |= kEntryShared;
}

void ModuleParser::Statement() {
  if (at_ >= tokens_.size()) Fail("end of file");
  Instruction i;
  i.line = tokens_[at_].line;
  if (Eat("@")) {
    i.pred_inverted = Eat("!");
    const Operand* pred = Lookup(Next());
    if (!pred) Fail("predicate");
    i.pred = static_cast<int>(pred->reg);
  }
  Decode(Next(), i);
  while (!Eat(";")) {
    i.operands.push_back(ReadOperand());
    if (Eat("|")) {
      i.operands.push_back(ReadOperand());
      i.two_results = true;
    }
    Eat(",");
  }
  function_->code.push_back(std::move(i));
}

void ModuleParser::ResolveBranches() {
  for (Instruction& i : function_->code) {
    if (i.op != Op::kBra || i.operands.empty()) continue;
    if (i.operands[0].kind != Operand::Kind::kLabel) continue;
    const auto label = function_->labels.find(i.operands[0].name);
    if (label == function_->labels.end()) Fail("label " + i.operands[0].name);
    i.target = label->second;
  }
}

void ModuleParser::ResolveCalls() {
  for (auto& [name, function] : module_.functions) {
    for (Instruction& i : function->code) {
      if (i.op != Op::kCall) continue;
      for (const Operand& operand : i.operands) {
        if (operand.kind != Operand::Kind::kLabel) continue;
        const auto callee = module_.functions.find(operand.name);
        if (callee != module_.functions.end()) i.callee = callee->second.get();
        i.text = operand.name;
        break;
      }
    }
  }
}

}  // namespace ptx
