// expect: constant expression|not a constant|non-constant
// expect: an_operator_gave_a_nan_or_an_infinity
#include <varve/mode/nan_check_mode.hpp>
#include <varve/varve.hpp>
namespace vv = varve;
constexpr double checked(double x) {
  vv::nan_check_mode mode;
  return vv::with(mode, [](auto u) { return vv::log(u); }, x);
}
static_assert(checked(1.0) == 0);
#ifdef FAIL
static_assert(checked(0.0) < 0); // minus infinity
#endif
