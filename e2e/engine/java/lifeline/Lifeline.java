import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Ties an engine to the process that started it. That process holds the other end of standard input; however it ends, also by
 * kill -9, standard input ends with it, and then the engine closes and its folder goes. SIGTERM closes the engine and leaves the
 * folder to whoever sent it.
 */
final class Lifeline {
    /** How long an engine may take to close before it is halted: a hung one must not outlive its test run. */
    private static final long CLOSE_MILLIS = 15_000;

    // Standard output is for the starter; what the engine prints goes with its log to standard error.
    private final PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
    private final PrintStream log = System.err;
    private final InputStream in = System.in;
    private final Path home;
    private final Map<String, String> settings = new LinkedHashMap<>();
    private volatile AutoCloseable node;
    private volatile boolean orphaned;

    /** Reads {@code HOME key=value…} and starts to watch standard input. */
    Lifeline(String[] args) {
        System.setOut(log);
        home = Path.of(args[0]).toAbsolutePath();
        for (int i = 1; i < args.length; i++) {
            int eq = args[i].indexOf('=');
            settings.put(args[i].substring(0, eq), args[i].substring(eq + 1));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(this::close, "close"));
        daemon("lifeline", this::watch);
    }

    Path home() {
        return home;
    }

    Map<String, String> settings() {
        return settings;
    }

    /** Tells the starter where the node listens, then keeps the process until a signal or the end of standard input. */
    void hold(AutoCloseable started, Object httpAddress) throws InterruptedException {
        node = started;
        out.println(httpAddress);
        Thread.currentThread().join();
    }

    /** Ends a process whose engine did not start; without this the engine's own threads keep it. */
    void failed(Throwable cause) {
        cause.printStackTrace(log);
        System.exit(1);
    }

    private void watch() {
        try {
            while (in.read() >= 0) {
                // Nothing is ever sent: only the end matters.
            }
        } catch (IOException e) {
            // A broken pipe is an end as well.
        }
        orphaned = true;
        System.exit(0);
    }

    private void close() {
        daemon("halt", () -> {
            try {
                Thread.sleep(CLOSE_MILLIS);
            } catch (InterruptedException e) {
                // Halting at once is right, too.
            }
            Runtime.getRuntime().halt(3);
        });
        AutoCloseable started = node;
        try {
            if (started != null) {
                started.close();
            }
        } catch (Exception e) {
            e.printStackTrace(log);
        }
        if (orphaned) {
            delete();
        }
    }

    private void delete() {
        try (Stream<Path> all = Files.walk(home)) {
            for (Path p : (Iterable<Path>) all.sorted(Comparator.reverseOrder())::iterator) {
                Files.deleteIfExists(p);
            }
        } catch (IOException e) {
            e.printStackTrace(log);
        }
    }

    private static void daemon(String name, Runnable body) {
        Thread t = new Thread(body, name);
        t.setDaemon(true);
        t.start();
    }
}
