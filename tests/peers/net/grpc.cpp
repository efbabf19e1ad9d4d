// gRPC over TCP without TLS: a client streams messages of bytes to a synchronous service.
//
// Each message is made once and serialized for each sending; the service reads all into one message, whose bytes are
// memory of the process. For the rate, a message may wait for the next one (buffer hint), which is faster.
#include <grpcpp/grpcpp.h>

#include "tests/peers/net/meter.h"
#include "transfer.grpc.pb.h"

namespace {

using namespace peers::net;

class Receiver final : public Transfer::Service {
 public:
  explicit Receiver(Meter& meter, uint64_t bytes) : meter_(meter), bytes_(bytes) {}

  grpc::Status Send(grpc::ServerContext*, grpc::ServerReader<Part>* reader, Done*) override {
    Part part;
    meter_.receive([&] {
      if (!reader->Read(&part) || part.data().size() != bytes_) give_up("gRPC brought no message, or another one");
    });
    return grpc::Status::OK;
  }

 private:
  Meter& meter_;
  uint64_t bytes_;
};

} // namespace

int main(int argc, char** argv) {
  const Job job = job_of(argc, argv);
  Meter meter(job);
  Receiver service(meter, job.bytes);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) give_up("the gRPC server does not start");
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.enable_http_proxy", 0); // a proxy of the machine is not for its loopback
  const auto stub = Transfer::NewStub(
      grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  Done done;
  const auto writer = stub->Send(&context, &done);
  std::vector<Part> parts(Blocks(job.bytes).count());
  for (Part& part : parts) part.set_data(std::string(job.bytes, 'Z'));
  uint64_t given = 0;
  meter.send([&](bool more) {
    grpc::WriteOptions options;
    if (more) options.set_buffer_hint();
    if (!writer->Write(parts[given++ % parts.size()], options)) give_up("gRPC does not take a message");
  });
  writer->WritesDone();
  if (!writer->Finish().ok()) give_up("the gRPC call failed");
  server->Shutdown();
}
