// Opens the real devices for tests, all of one setup together.
#include "rig.h"

#include <stdexcept>

#include "embed/device_module.h"
#include "plan/domain.h"

namespace millrace::test {

Setup on_gpu(std::vector<std::string> domains, const std::string& faults) {
  const embed::LoadedModule& loaded = embed::cuda_module();
  if (!loaded.module) throw std::runtime_error("no CUDA device: " + loaded.why);
  Setup setup;
  setup.more = &cuda_plugin();
  setup.domains = domains;
  // All are opened with the first, so that they know each other.
  auto opened = std::make_shared<std::map<std::string, std::unique_ptr<device::Device>>>();
  setup.make_gpu = [=, &loaded](const std::string& domain, std::shared_ptr<device::PinnedRanges> pinned) {
    if (!opened->count(domain)) {
      device::ModuleOptions options{{}, std::move(pinned), faults};
      std::vector<std::string> names;
      for (const std::string& name : domains) {
        const std::optional<plan::Domain> one = plan::parse_domain(name);
        if (!one || one->kind != plan::DomainKind::cuda) continue;
        names.push_back(name);
        options.devices.push_back(one->index);
      }
      std::string why;
      std::vector<std::unique_ptr<device::Device>> devices = loaded.module->make(options, why);
      if (devices.empty()) throw std::runtime_error(why);
      for (size_t d = 0; d < devices.size(); ++d) (*opened)[names[d]] = std::move(devices[d]);
    }
    std::unique_ptr<device::Device> device = std::move(opened->at(domain));
    opened->erase(domain); // another run opens it anew
    return device;
  };
  return setup;
}

} // namespace millrace::test
