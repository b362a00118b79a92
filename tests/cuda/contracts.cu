// Every header that a kernel on a GPU will implement or use. A family added to kernels/ is added
// here.
#include "core/check.h"
#include "core/dtype.h"
#include "core/executor.h"
#include "core/random.h"
#include "core/status.h"
#include "core/tensor.h"
#include "kernels/backend.h"
#include "kernels/blocks.h"
#include "kernels/combine.h"
#include "kernels/convert.h"
#include "kernels/elementwise.h"
#include "kernels/index_code.h"
#include "kernels/low_rank.h"
#include "kernels/qsgd.h"
#include "kernels/quantize.h"
#include "kernels/random.h"
#include "kernels/select.h"
#include "kernels/sign.h"
#include "kernels/sums.h"
#include "tests/cuda/contracts.h"
#include "tests/cuda/layout.h"

namespace slimgrad {

std::optional<std::array<std::size_t, 12>> LayoutUnderNvcc() { return LayoutHere(); }

}  // namespace slimgrad
