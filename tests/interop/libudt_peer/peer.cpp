// A program that speaks UDT4 through libudt: the other end in tests and benches.
//
//   peer srv --port 0 --bytes 1000000            prints {"listening": PORT}, then its result
//   peer cli --port PORT --bytes 1000000 --seed 7
//   peer rdv --local-port 9001 --port 9002 ...   the end with the smaller local port sends
//
// options.hpp has every option and what it is without being given. Each connection has a thread.
// `cli` sends --bytes words made from --seed plus the connection's number (zeros with --pattern
// constant) in calls of --block bytes, waits until they are acknowledged and closes; `srv`
// receives until the end. With --receive-back `srv` then sends as much, from seeds that begin at
// seed + 1000000. With --bytes 0 sending stops after --seconds. In message mode a block is a
// message.
//
// The result is one line of JSON: for each connection bytes and a hash of what was sent and
// received, what came after --omit seconds (steady), the library's statistics; for the process
// CPU seconds and the largest resident set. Error codes are libudt's: 1001 no answer, 1002
// refused, 2001 broken off, 6003 out of time. Exit code 0 if there were none, 1 if one, 2 if the
// command line was wrong.

#include <arpa/inet.h>
#include <sys/resource.h>
#include <udt/udt.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "options.hpp"
#include "pattern.hpp"

namespace {

constexpr int BROKEN = 2001, NOTHING_YET = 6002, TIMED_OUT = 6003;
constexpr uint64_t BACK_SEED = 1000000;
constexpr double PATIENCE_S = 3.0;

double now_s()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

struct Result {
    int64_t sent = 0, received = 0, steady_bytes = 0;
    double steady_s = 0.0, seconds = 0.0;
    Hash sent_hash, received_hash;
    int64_t messages_sent = 0, messages_received = 0;
    std::vector<uint64_t> messages;
    int error = 0;
    std::string text;
    UDT::TRACEINFO statistics{};
};

void fail(Result& result)
{
    result.error = UDT::getlasterror_code();
    result.text = UDT::getlasterror_desc();
    while (!result.text.empty() && result.text.back() <= ' ')
        result.text.pop_back();
}

// One connection: a socket, its options, what has come of it.
class Connection {
public:
    Connection(const Options& options, uint64_t number)
        : options_(options), number_(number), begun_s_(now_s())
    {
    }

    void use(UDTSOCKET socket)
    {
        socket_ = socket;
        connected_s_ = now_s();
        const bool is_waiting = !options_.is_message; // see receive_message
        UDT::setsockopt(socket, 0, UDT_RCVSYN, &is_waiting, sizeof is_waiting);
    }

    void send_all(uint64_t seed)
    {
        Pattern pattern(seed);
        std::vector<char> block(options_.block, 0);
        const double end_s = begun_s_ + options_.seconds;
        while (result.error == 0 && (options_.is_timed() || result.sent < options_.bytes)) {
            if (now_s() > end_s) {
                result.error = options_.is_timed() ? 0 : TIMED_OUT;
                return;
            }
            size_t length = block.size();
            if (!options_.is_timed())
                length = std::min<int64_t>(length, options_.bytes - result.sent);
            if (!options_.is_constant)
                pattern.fill(block.data(), length);
            options_.is_message ? send_message(block.data(), length)
                                : send_block(block.data(), length, end_s);
        }
    }

    void receive_all()
    {
        std::vector<char> block(options_.block);
        const bool is_counted = options_.receive_back || options_.role == "cli";
        while (result.error == 0 && !(is_counted && result.received >= options_.bytes)) {
            const int length = options_.is_message
                ? receive_message(block)
                : UDT::recv(socket_, block.data(), block.size(), 0);
            if (length != UDT::ERROR) {
                take(block.data(), length);
            } else if (!is_worth_waiting()) {
                end_of_data();
                break;
            }
        }
        result.steady_s = std::max(0.0, std::min(now_s(), steady_end_s()) - steady_begin_s());
    }

    // Waits until all is acknowledged, so that the statistics are whole, and closes.
    void close()
    {
        if (socket_ != UDT::INVALID_SOCK) {
            const double end_s = now_s() + options_.linger_s;
            int waiting = 1, size = sizeof waiting;
            while (now_s() < end_s && waiting > 0
                   && UDT::getsockopt(socket_, 0, UDT_SNDDATA, &waiting, &size) != UDT::ERROR
                   && UDT::getsockstate(socket_) == CONNECTED)
                usleep(500);
            observe();
            UDT::close(socket_);
        }
        result.seconds = now_s() - begun_s_;
    }

    uint64_t number() const { return number_; }

    Result result;

private:
    void send_block(const char* bytes, size_t length, double end_s)
    {
        while (length > 0) {
            const int done = UDT::send(socket_, bytes, length, 0);
            if (done == UDT::ERROR) {
                if (UDT::getlasterror_code() != TIMED_OUT)
                    return fail(result);
                if (now_s() > end_s)
                    return;
                continue;
            }
            sent(bytes, done);
            bytes += done;
            length -= done;
        }
    }

    void send_message(const char* bytes, size_t length)
    {
        if (UDT::sendmsg(socket_, bytes, length, options_.ttl_ms, options_.in_order) == UDT::ERROR)
            return fail(result);
        ++result.messages_sent;
        note_message(bytes, length);
        sent(bytes, length);
    }

    // Without waiting: a waiting recvmsg of 4.11 that a shutdown wakes drops the message it read.
    int receive_message(std::vector<char>& block)
    {
        const double end_s = begun_s_ + options_.seconds + (options_.is_timed() ? PATIENCE_S : 0.0);
        while (true) {
            const int length = UDT::recvmsg(socket_, block.data(), block.size());
            const bool is_nothing_yet
                = length == UDT::ERROR && UDT::getlasterror_code() == NOTHING_YET;
            if (!is_nothing_yet || now_s() > end_s)
                return length;
            usleep(100);
        }
    }

    void sent(const char* bytes, int length)
    {
        result.sent += length;
        if (!options_.is_constant)
            result.sent_hash.add(bytes, length);
    }

    void take(const char* bytes, int length)
    {
        result.received += length;
        const double at_s = now_s();
        if (at_s >= steady_begin_s() && at_s <= steady_end_s())
            result.steady_bytes += length;
        if (options_.is_message) {
            ++result.messages_received;
            note_message(bytes, length);
        }
        if (!options_.is_constant)
            result.received_hash.add(bytes, length);
        if (at_s - observed_s_ > 0.1) {
            observe();
            observed_s_ = at_s;
        }
    }

    void note_message(const char* bytes, int length)
    {
        if (!options_.list)
            return;
        Hash hash;
        hash.add(bytes, length);
        result.messages.push_back(hash.value());
    }

    double steady_begin_s() const { return connected_s_ + options_.omit_s; }

    double steady_end_s() const
    {
        return options_.is_timed() ? connected_s_ + options_.seconds : now_s();
    }

    // A timed run waits a little longer than its time: libudt says once that it is over, and that
    // one packet may be lost.
    bool is_worth_waiting() const
    {
        const double longest_s = options_.seconds + options_.linger_s + PATIENCE_S;
        return options_.is_timed() && UDT::getlasterror_code() == TIMED_OUT
            && now_s() < connected_s_ + longest_s;
    }

    // libudt says "broken" both after an orderly end and after a lost peer.
    void end_of_data()
    {
        const bool is_whole = options_.is_timed() || options_.ttl_ms >= 0
            || result.received >= options_.bytes;
        const int code = UDT::getlasterror_code();
        const bool is_over = code == BROKEN
            || (options_.is_timed() && (code == TIMED_OUT || code == NOTHING_YET));
        if (!is_whole || !is_over)
            fail(result);
    }

    // A broken connection has no statistics any more: the last ones seen stand.
    void observe()
    {
        UDT::TRACEINFO seen;
        if (UDT::perfmon(socket_, &seen, false) != UDT::ERROR)
            result.statistics = seen;
    }

    const Options& options_;
    uint64_t number_;
    UDTSOCKET socket_ = UDT::INVALID_SOCK;
    double begun_s_, connected_s_ = 0.0, observed_s_ = 0.0;
};

sockaddr_in address(const std::string& host, int port)
{
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    inet_pton(AF_INET, host.c_str(), &name.sin_addr);
    return name;
}

void set_option(UDTSOCKET socket, UDTOpt option, int value)
{
    if (value > 0)
        UDT::setsockopt(socket, 0, option, &value, sizeof value);
}

// The order matters: the packet size and the window are what the library counts buffers with.
UDTSOCKET make_socket(const Options& options)
{
    const int kind = options.is_message ? SOCK_DGRAM : SOCK_STREAM;
    const UDTSOCKET socket = UDT::socket(AF_INET, kind, 0);
    set_option(socket, UDP_SNDBUF, options.udp_send_buffer);
    set_option(socket, UDP_RCVBUF, options.udp_receive_buffer);
    set_option(socket, UDT_MSS, options.packet + 28);
    set_option(socket, UDT_FC, options.flow_window);
    set_option(socket, UDT_SNDBUF, options.send_buffer);
    set_option(socket, UDT_RCVBUF, options.receive_buffer);
    const linger wait{options.linger_s > 0, static_cast<int>(options.linger_s)};
    UDT::setsockopt(socket, 0, UDT_LINGER, &wait, sizeof wait);
    const int limit_ms = options.is_timed() ? 100 : static_cast<int>(options.seconds * 1000);
    UDT::setsockopt(socket, 0, UDT_SNDTIMEO, &limit_ms, sizeof limit_ms);
    UDT::setsockopt(socket, 0, UDT_RCVTIMEO, &limit_ms, sizeof limit_ms);
    return socket;
}

bool bind_to(UDTSOCKET socket, const Options& options, const std::string& host, int port)
{
    const sockaddr_in local = address(host, port);
    const bool is_rendezvous = options.role == "rdv";
    UDT::setsockopt(socket, 0, UDT_RENDEZVOUS, &is_rendezvous, sizeof is_rendezvous);
    return UDT::bind(socket, reinterpret_cast<const sockaddr*>(&local), sizeof local) != UDT::ERROR;
}

void run_sender(Connection& connection, const Options& options)
{
    connection.send_all(options.seed + connection.number());
    if (options.receive_back) {
        connection.receive_all();
        // What was received last is acknowledged by a timer of 10 ms, and not when it closes.
        usleep(100'000);
    }
    connection.close();
}

void run_receiver(Connection& connection, const Options& options)
{
    connection.receive_all();
    if (options.receive_back)
        connection.send_all(options.seed + BACK_SEED + connection.number());
    connection.close();
}

void run_caller(Connection& connection, const Options& options)
{
    const UDTSOCKET socket = make_socket(options);
    const sockaddr_in remote = address(options.host, options.port);
    const bool is_bound
        = options.local_port == 0 || bind_to(socket, options, "0.0.0.0", options.local_port);
    if (!is_bound
        || UDT::connect(socket, reinterpret_cast<const sockaddr*>(&remote), sizeof remote)
            == UDT::ERROR) {
        fail(connection.result);
        return connection.close();
    }
    connection.use(socket);
    if (options.role == "rdv" && options.local_port > options.port)
        run_receiver(connection, options);
    else
        run_sender(connection, options);
}

std::vector<Connection> run_callers(const Options& options)
{
    std::vector<Connection> connections;
    std::vector<std::thread> threads;
    for (int number = 0; number < options.connections; ++number)
        connections.emplace_back(options, number);
    for (Connection& connection : connections)
        threads.emplace_back([&] { run_caller(connection, options); });
    for (std::thread& thread : threads)
        thread.join();
    return connections;
}

void say_where(UDTSOCKET listener)
{
    sockaddr_in local{};
    int size = sizeof local;
    UDT::getsockname(listener, reinterpret_cast<sockaddr*>(&local), &size);
    printf("{\"listening\": %d}\n", ntohs(local.sin_port));
    fflush(stdout);
}

std::vector<Connection> run_listener(const Options& options)
{
    std::vector<Connection> connections;
    connections.reserve(options.connections);
    std::vector<std::thread> threads;
    const UDTSOCKET listener = make_socket(options);
    const bool is_listening = bind_to(listener, options, options.host, options.port)
        && UDT::listen(listener, options.connections + 8) != UDT::ERROR;
    if (is_listening)
        say_where(listener);
    for (int number = 0; number < options.connections; ++number) {
        Connection& connection = connections.emplace_back(options, number);
        const UDTSOCKET socket = is_listening ? UDT::accept(listener, nullptr, nullptr) : -1;
        if (socket == UDT::INVALID_SOCK) {
            fail(connection.result);
            break;
        }
        connection.use(socket);
        threads.emplace_back([&] { run_receiver(connection, options); });
    }
    for (std::thread& thread : threads)
        thread.join();
    return connections;
}

void print_statistics(const UDT::TRACEINFO& seen)
{
    printf("\"statistics\":{\"pktSent\":%lld,\"pktRecv\":%lld,\"pktSndLoss\":%d,\"pktRcvLoss\":%d,",
        static_cast<long long>(seen.pktSentTotal), static_cast<long long>(seen.pktRecvTotal),
        seen.pktSndLossTotal, seen.pktRcvLossTotal);
    printf("\"pktRetrans\":%d,\"pktSentACK\":%d,\"pktRecvACK\":%d,\"pktSentNAK\":%d,",
        seen.pktRetransTotal, seen.pktSentACKTotal, seen.pktRecvACKTotal, seen.pktSentNAKTotal);
    printf("\"pktRecvNAK\":%d,\"msRTT\":%.3f,\"usPktSndPeriod\":%.3f}", seen.pktRecvNAKTotal,
        seen.msRTT, seen.usPktSndPeriod);
}

void print(const Result& result, bool is_constant)
{
    const uint64_t hashes[]
        = {is_constant ? 0 : result.sent_hash.value(), is_constant ? 0 : result.received_hash.value()};
    printf("{\"sent_bytes\":%lld,\"sent_hash\":\"%016llx\",", static_cast<long long>(result.sent),
        static_cast<unsigned long long>(hashes[0]));
    printf("\"received_bytes\":%lld,\"received_hash\":\"%016llx\",",
        static_cast<long long>(result.received), static_cast<unsigned long long>(hashes[1]));
    printf("\"steady_bytes\":%lld,\"steady_s\":%.6f,", static_cast<long long>(result.steady_bytes),
        result.steady_s);
    printf("\"messages_sent\":%lld,\"messages_received\":%lld,\"message_hashes\":[",
        static_cast<long long>(result.messages_sent),
        static_cast<long long>(result.messages_received));
    for (size_t at = 0; at < result.messages.size(); ++at)
        printf("%s\"%016llx\"", at ? "," : "", static_cast<unsigned long long>(result.messages[at]));
    printf("],\"seconds\":%.6f,\"error_code\":%d,\"error\":\"%s\",", result.seconds, result.error,
        result.text.c_str());
    print_statistics(result.statistics);
    printf("}");
}

int print(const Options& options, const std::vector<Connection>& connections, double seconds)
{
    const auto bad = std::find_if(connections.begin(), connections.end(),
        [](const Connection& one) { return one.result.error != 0; });
    const bool is_good = bad == connections.end();
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const double cpu_s = used.ru_utime.tv_sec + used.ru_stime.tv_sec
        + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("{\"role\":\"%s\",\"implementation\":\"libudt\",\"seconds\":%.6f,\"cpu_s\":%.6f,",
        options.role.c_str(), seconds, cpu_s);
    printf("\"rss_kb\":%ld,\"error_code\":%d,\"error\":\"%s\",\"connections\":[", used.ru_maxrss,
        is_good ? 0 : bad->result.error, is_good ? "" : bad->result.text.c_str());
    for (size_t at = 0; at < connections.size(); ++at) {
        printf("%s", at ? "," : "");
        print(connections[at].result, options.is_constant);
    }
    printf("]}\n");
    fflush(stdout);
    return is_good ? 0 : 1;
}

} // namespace

int main(int count, char** words)
{
    const Options options = parse(count, words);
    const double begun_s = now_s();
    UDT::startup();
    const auto connections = options.role == "srv" ? run_listener(options) : run_callers(options);
    // The library's own end takes a second, and all there is to say has been said.
    _exit(print(options, connections, now_s() - begun_s));
}
