import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;

/** One Kafka broker with its KRaft controller, on free ports of 127.0.0.1. What it has stays in its folder for the next start. */
public final class KafkaNode {
    private KafkaNode() {}

    public static void main(String[] args) throws Exception {
        Lifeline lifeline = new Lifeline(args);
        try {
            Path data = lifeline.home().resolve("data");
            int port = Integer.parseInt(lifeline.settings().getOrDefault("port", "0"));
            port = port == 0 ? freePort() : port;
            int controller = freePort();
            if (!Files.exists(data.resolve("meta.properties"))) {
                format(data);
            }
            Properties p = new Properties();
            p.putAll(Map.ofEntries(
                Map.entry("process.roles", "broker,controller"),
                Map.entry("node.id", "1"),
                Map.entry("controller.quorum.voters", "1@127.0.0.1:" + controller),
                Map.entry("listeners", "PLAINTEXT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controller),
                Map.entry("advertised.listeners", "PLAINTEXT://127.0.0.1:" + port),
                Map.entry("controller.listener.names", "CONTROLLER"),
                Map.entry("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"),
                Map.entry("log.dirs", data.toString()),
                Map.entry("offsets.topic.replication.factor", "1"),
                Map.entry("transaction.state.log.replication.factor", "1"),
                Map.entry("transaction.state.log.min.isr", "1"),
                Map.entry("group.initial.rebalance.delay.ms", "0"),
                Map.entry("auto.create.topics.enable", "false")));
            KafkaRaftServer server = new KafkaRaftServer(new KafkaConfig(p, false), Time.SYSTEM);
            server.startup();
            lifeline.hold(server::shutdown, "127.0.0.1:" + port);
        } catch (Throwable e) {
            lifeline.failed(e);
        }
    }

    private static int freePort() throws Exception {
        try (ServerSocket s = new ServerSocket(0)) {
            return s.getLocalPort();
        }
    }

    /** Prepares an empty folder, as kafka-storage.sh does. */
    private static void format(Path data) throws Exception {
        Path file = Files.createDirectories(data.getParent()).resolve("format.properties");
        Files.writeString(file, String.join("\n",
            "process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@127.0.0.1:1", "controller.listener.names=CONTROLLER",
            "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:1",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs=" + data, ""), StandardCharsets.UTF_8);
        int status = kafka.tools.StorageTool.execute(
            new String[] {"format", "-t", org.apache.kafka.common.Uuid.randomUuid().toString(), "-c", file.toString()}, System.err);
        if (status != 0) {
            throw new IllegalStateException("the storage can't be formatted: " + status);
        }
    }
}
