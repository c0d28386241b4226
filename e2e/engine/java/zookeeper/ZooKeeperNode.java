import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.zookeeper.server.ServerConfig;
import org.apache.zookeeper.server.ZooKeeperServerMain;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/** One ZooKeeper server on a free port of 127.0.0.1. What it has stays in its folder for the next start. */
public final class ZooKeeperNode {
    private ZooKeeperNode() {}

    public static void main(String[] args) throws Exception {
        Lifeline lifeline = new Lifeline(args);
        try {
            int port = Integer.parseInt(lifeline.settings().getOrDefault("port", "0"));
            port = port == 0 ? freePort() : port;
            System.setProperty("zookeeper.admin.enableServer", "false");
            Properties p = new Properties();
            p.setProperty("dataDir", lifeline.home().resolve("data").toString());
            p.setProperty("clientPort", String.valueOf(port));
            p.setProperty("clientPortAddress", "127.0.0.1");
            p.setProperty("maxClientCnxns", "0");
            // Short sessions end soon, long ones are for slow machines.
            p.setProperty("tickTime", "100");
            p.setProperty("minSessionTimeout", "200");
            p.setProperty("maxSessionTimeout", "60000");
            QuorumPeerConfig peer = new QuorumPeerConfig();
            peer.parseProperties(p);
            ServerConfig config = new ServerConfig();
            config.readFrom(peer);
            Server server = new Server();
            Thread runs = new Thread(() -> {
                try {
                    server.runFromConfig(config);
                } catch (Throwable e) {
                    lifeline.failed(e);
                }
            }, "server");
            runs.start();
            await(port);
            lifeline.hold(server::end, "127.0.0.1:" + port);
        } catch (Throwable e) {
            lifeline.failed(e);
        }
    }

    private static final class Server extends ZooKeeperServerMain {
        void end() {
            shutdown();
        }
    }

    private static int freePort() throws Exception {
        try (ServerSocket s = new ServerSocket(0)) {
            return s.getLocalPort();
        }
    }

    /** Waits until the server says how it is doing: it takes connections before it serves them. */
    private static void await(int port) throws Exception {
        while (true) {
            try (Socket s = new Socket(InetAddress.getLoopbackAddress(), port)) {
                s.setSoTimeout(1000);
                s.getOutputStream().write("srvr".getBytes(StandardCharsets.US_ASCII));
                if (new String(s.getInputStream().readAllBytes(), StandardCharsets.US_ASCII).contains("Mode:")) {
                    return;
                }
            } catch (java.io.IOException e) {
                // it will
            }
            Thread.sleep(20);
        }
    }
}
