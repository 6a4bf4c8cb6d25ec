// A device guard for CUDA that does nothing: a CPU build of torch can then hold fake CUDA tensors, so that the code of a
// model dispatches as it does on a card. No kernel runs.
#include <c10/core/impl/DeviceGuardImplInterface.h>
namespace {
C10_REGISTER_GUARD_IMPL(CUDA, c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA>);
}
