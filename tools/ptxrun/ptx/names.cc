// The tables behind names.h.
#include "tools/ptxrun/ptx/names.h"

#include <unordered_map>
#include <unordered_set>

namespace ptx {
namespace {

template <class Word>
using Names = std::unordered_map<std::string, Word>;

const Names<Type> kTypes{
    {"pred", Type::kPred},     {"b8", Type::kB8},       {"b16", Type::kB16},
    {"b32", Type::kB32},       {"b64", Type::kB64},     {"b128", Type::kB128},
    {"u8", Type::kU8},         {"u16", Type::kU16},     {"u32", Type::kU32},
    {"u64", Type::kU64},       {"s8", Type::kS8},       {"s16", Type::kS16},
    {"s32", Type::kS32},       {"s64", Type::kS64},     {"f16", Type::kF16},
    {"f16x2", Type::kF16x2},   {"bf16", Type::kBf16},   {"bf16x2", Type::kBf16x2},
    {"f32", Type::kF32},       {"f64", Type::kF64},     {"e4m3x2", Type::kE4m3x2},
    {"e5m2x2", Type::kE5m2x2}, {"s16x2", Type::kS16x2}, {"u16x2", Type::kU16x2}};

const Names<Op> kOps{{"mov", Op::kMov},
                     {"ld", Op::kLd},
                     {"ldu", Op::kLd},
                     {"st", Op::kSt},
                     {"cvta", Op::kCvta},
                     {"cvt", Op::kCvt},
                     {"add", Op::kAdd},
                     {"addc", Op::kAdd},
                     {"sub", Op::kSub},
                     {"subc", Op::kSub},
                     {"mul", Op::kMul},
                     {"mul24", Op::kMul},
                     {"mad", Op::kMad},
                     {"madc", Op::kMad},
                     {"mad24", Op::kMad},
                     {"fma", Op::kFma},
                     {"div", Op::kDiv},
                     {"rem", Op::kRem},
                     {"abs", Op::kAbs},
                     {"neg", Op::kNeg},
                     {"min", Op::kMin},
                     {"max", Op::kMax},
                     {"and", Op::kAnd},
                     {"or", Op::kOr},
                     {"xor", Op::kXor},
                     {"not", Op::kNot},
                     {"cnot", Op::kCnot},
                     {"shl", Op::kShl},
                     {"shr", Op::kShr},
                     {"shf", Op::kShf},
                     {"bfe", Op::kBfe},
                     {"bfi", Op::kBfi},
                     {"bfind", Op::kBfind},
                     {"clz", Op::kClz},
                     {"popc", Op::kPopc},
                     {"brev", Op::kBrev},
                     {"prmt", Op::kPrmt},
                     {"lop3", Op::kLop3},
                     {"dp4a", Op::kDp4a},
                     {"sad", Op::kSad},
                     {"setp", Op::kSetp},
                     {"set", Op::kSet},
                     {"selp", Op::kSelp},
                     {"slct", Op::kSlct},
                     {"copysign", Op::kCopysign},
                     {"rcp", Op::kRcp},
                     {"sqrt", Op::kSqrt},
                     {"rsqrt", Op::kRsqrt},
                     {"sin", Op::kSin},
                     {"cos", Op::kCos},
                     {"lg2", Op::kLg2},
                     {"ex2", Op::kEx2},
                     {"tanh", Op::kTanh},
                     {"testp", Op::kTestp},
                     {"bra", Op::kBra},
                     {"brx", Op::kBrx},
                     {"call", Op::kCall},
                     {"ret", Op::kRet},
                     {"exit", Op::kExit},
                     {"trap", Op::kTrap},
                     {"brkpt", Op::kTrap},
                     {"bar", Op::kBar},
                     {"barrier", Op::kBar},
                     {"membar", Op::kFence},
                     {"fence", Op::kFence},
                     {"prefetch", Op::kNop},
                     {"prefetchu", Op::kNop},
                     {"nanosleep", Op::kSleep},
                     {"griddepcontrol", Op::kNop},
                     {"discard", Op::kNop},
                     {"applypriority", Op::kNop},
                     {"pmevent", Op::kNop},
                     {"shfl", Op::kShfl},
                     {"vote", Op::kVote},
                     {"match", Op::kMatch},
                     {"redux", Op::kRedux},
                     {"activemask", Op::kActivemask},
                     {"atom", Op::kAtom},
                     {"red", Op::kRed},
                     {"isspacep", Op::kIsspacep},
                     {"elect", Op::kElect},
                     {"cp", Op::kCpAsync},
                     {"bmsk", Op::kBmsk},
                     {"fns", Op::kFns},
                     {"mbarrier", Op::kMbarrier}};

const Names<Compare> kCompares{
    {"eq", Compare::kEq},   {"ne", Compare::kNe},   {"lt", Compare::kLt},   {"le", Compare::kLe},
    {"gt", Compare::kGt},   {"ge", Compare::kGe},   {"lo", Compare::kLo},   {"ls", Compare::kLs},
    {"hi", Compare::kHi},   {"hs", Compare::kHs},   {"equ", Compare::kEqu}, {"neu", Compare::kNeu},
    {"ltu", Compare::kLtu}, {"leu", Compare::kLeu}, {"gtu", Compare::kGtu}, {"geu", Compare::kGeu},
    {"num", Compare::kNum}, {"nan", Compare::kNan}};

// Without clusters a block is a cluster of its own, and every clock counts instructions.
const Names<Special> kSpecials{{"%tid.x", Special::kTidX},
                               {"%tid.y", Special::kTidY},
                               {"%tid.z", Special::kTidZ},
                               {"%ntid.x", Special::kNtidX},
                               {"%ntid.y", Special::kNtidY},
                               {"%ntid.z", Special::kNtidZ},
                               {"%ctaid.x", Special::kCtaidX},
                               {"%ctaid.y", Special::kCtaidY},
                               {"%ctaid.z", Special::kCtaidZ},
                               {"%nctaid.x", Special::kNctaidX},
                               {"%nctaid.y", Special::kNctaidY},
                               {"%nctaid.z", Special::kNctaidZ},
                               {"%laneid", Special::kLaneid},
                               {"%warpid", Special::kWarpid},
                               {"%nwarpid", Special::kNwarpid},
                               {"WARP_SZ", Special::kWarpSize},
                               {"%clock", Special::kClock},
                               {"%clock_hi", Special::kClock},
                               {"%clock64", Special::kClock},
                               {"%globaltimer", Special::kClock},
                               {"%globaltimer_lo", Special::kClock},
                               {"%smid", Special::kSmid},
                               {"%nsmid", Special::kNsmid},
                               {"%lanemask_eq", Special::kLanemaskEq},
                               {"%lanemask_lt", Special::kLanemaskLt},
                               {"%lanemask_le", Special::kLanemaskLe},
                               {"%lanemask_gt", Special::kLanemaskGt},
                               {"%lanemask_ge", Special::kLanemaskGe},
                               {"%gridid", Special::kGridid},
                               {"%dynamic_smem_size", Special::kDynamicSmemSize},
                               {"%total_smem_size", Special::kTotalSmemSize},
                               {"%clusterid.x", Special::kCtaidX},
                               {"%clusterid.y", Special::kCtaidY},
                               {"%clusterid.z", Special::kCtaidZ},
                               {"%nclusterid.x", Special::kNctaidX},
                               {"%nclusterid.y", Special::kNctaidY},
                               {"%nclusterid.z", Special::kNctaidZ},
                               {"%cluster_ctarank", Special::kZero},
                               {"%cluster_ctaid.x", Special::kZero},
                               {"%cluster_ctaid.y", Special::kZero},
                               {"%cluster_ctaid.z", Special::kZero},
                               {"%is_explicit_cluster", Special::kZero},
                               {"%envreg1", Special::kEnvreg1},
                               {"%envreg2", Special::kEnvreg2},
                               {"%cluster_nctarank", Special::kOne},
                               {"%cluster_nctaid.x", Special::kOne},
                               {"%cluster_nctaid.y", Special::kOne},
                               {"%cluster_nctaid.z", Special::kOne}};

const Names<Space> kSpaces{{"global", Space::kGlobal},
                           {"shared", Space::kShared},
                           {"local", Space::kLocal},
                           {"param", Space::kParam},
                           {"const", Space::kConst}};

const Names<Rounding> kRoundings{{"rz", Rounding::kZero},     {"rzi", Rounding::kZero},
                                 {"rm", Rounding::kDown},     {"rmi", Rounding::kDown},
                                 {"rp", Rounding::kUp},       {"rpi", Rounding::kUp},
                                 {"rni", Rounding::kInteger}, {"rna", Rounding::kAway}};

const Names<WarpMode> kWarpModes{
    {"up", WarpMode::kUp},   {"down", WarpMode::kDown},     {"bfly", WarpMode::kBfly},
    {"idx", WarpMode::kIdx}, {"ballot", WarpMode::kBallot}, {"any", WarpMode::kAny},
    {"all", WarpMode::kAll}, {"uni", WarpMode::kUni},       {"add", WarpMode::kAdd},
    {"and", WarpMode::kAnd}, {"or", WarpMode::kOr},         {"xor", WarpMode::kXor},
    {"min", WarpMode::kMin}, {"max", WarpMode::kMax}};

const Names<Atomic> kAtomics{{"add", Atomic::kAdd},   {"min", Atomic::kMin}, {"max", Atomic::kMax},
                             {"and", Atomic::kAnd},   {"or", Atomic::kOr},   {"xor", Atomic::kXor},
                             {"exch", Atomic::kExch}, {"cas", Atomic::kCas}, {"inc", Atomic::kInc},
                             {"dec", Atomic::kDec}};

const Names<Mbarrier> kMbarriers{
    {"init", Mbarrier::kInit},          {"inval", Mbarrier::kInval},
    {"arrive", Mbarrier::kArrive},      {"expect_tx", Mbarrier::kExpectTx},
    {"test_wait", Mbarrier::kTestWait}, {"try_wait", Mbarrier::kTryWait}};

const std::unordered_set<std::string> kModifiers{
    "ftz",          "sat",        "satfinite", "hi",       "lo",      "wide",     "cc",
    "to",           "relu",       "rn",        "rz",       "rm",      "rp",       "rni",
    "rzi",          "rmi",        "rpi",       "rna",      "approx",  "full",     "uni",
    "sync",         "aligned",    "v2",        "v4",       "v8",      "global",   "shared",
    "local",        "param",      "const",     "volatile", "relaxed", "acquire",  "release",
    "acq_rel",      "sc",         "weak",      "cta",      "gpu",     "sys",      "cluster",
    "nc",           "ca",         "cg",        "cs",       "lu",      "cv",       "wb",
    "wt",           "and",        "or",        "xor",      "add",     "min",      "max",
    "inc",          "dec",        "exch",      "cas",      "up",      "down",     "bfly",
    "idx",          "ballot",     "any",       "all",      "l",       "r",        "clamp",
    "wrap",         "noftz",      "popc",      "red",      "arrive",  "shiftamt", "async",
    "commit_group", "wait_group", "wait_all",  "warp",     "finite",  "infinite", "number",
    "notanumber",   "normal",     "subnormal", "proxy",    "gl",      "level",    "NaN",
    "xorsign",      "abs"};

template <class Word>
std::optional<Word> Find(const Names<Word>& names, const std::string& name) {
  const auto found = names.find(name);
  if (found == names.end()) return std::nullopt;
  return found->second;
}

}  // namespace

Type TypeNamed(const std::string& name) { return Find(kTypes, name).value_or(Type::kNone); }
Op OpNamed(const std::string& name) { return Find(kOps, name).value_or(Op::kUnsupported); }
Space SpaceNamed(const std::string& name) { return Find(kSpaces, name).value_or(Space::kGeneric); }

std::optional<Compare> CompareNamed(const std::string& name) { return Find(kCompares, name); }
std::optional<Rounding> RoundingNamed(const std::string& name) { return Find(kRoundings, name); }
std::optional<Special> SpecialNamed(const std::string& name) { return Find(kSpecials, name); }
std::optional<WarpMode> WarpModeNamed(const std::string& name) { return Find(kWarpModes, name); }
std::optional<Atomic> AtomicNamed(const std::string& name) { return Find(kAtomics, name); }
std::optional<Mbarrier> MbarrierNamed(const std::string& name) { return Find(kMbarriers, name); }

bool IsKnownModifier(const std::string& name) { return kModifiers.contains(name); }

}  // namespace ptx
