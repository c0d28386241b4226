import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.http.HttpServerTransport;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/**
 * One Elasticsearch 9 node without its distribution. The folder that the system property es.path.home names holds modules/ and the
 * native library and is shared by all nodes; configuration, data and logs are in the node's own folder.
 */
public final class Elasticsearch9Node {
    private static final String LOGGING = """
        status = error
        appender.console.type = Console
        appender.console.name = console
        appender.console.layout.type = PatternLayout
        appender.console.layout.pattern = [%d{ISO8601}][%-5p][%-25c{1.}] %m%n
        rootLogger.level = info
        rootLogger.appenderRef.console.ref = console
        """;

    private Elasticsearch9Node() {}

    public static void main(String[] args) throws Exception {
        Lifeline lifeline = new Lifeline(args);
        try {
            Environment environment = environment(lifeline);
            // false: without the services that need the server as a named module; here it is on the class path.
            PluginsLoader modules = PluginsLoader.createPluginsLoader(
                PluginsLoader.loadModulesBundles(environment.modulesDir(), false), Set.of(), Map.of(), false);
            Node node = new Node(environment, modules);
            node.start();
            lifeline.hold(node, node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress());
        } catch (Throwable e) {
            lifeline.failed(e);
        }
    }

    private static Environment environment(Lifeline lifeline) throws Exception {
        Path config = Files.createDirectories(lifeline.home().resolve("config"));
        Files.writeString(config.resolve("log4j2.properties"), LOGGING);
        Settings.Builder settings = Settings.builder()
            .put("path.home", System.getProperty("es.path.home"))
            .put("path.data", lifeline.home().resolve("data").toString())
            .put("path.logs", lifeline.home().resolve("logs").toString());
        lifeline.settings().forEach(settings::put);
        String name = lifeline.settings().get("node.name");
        // Logging has to stand before the first class that logs is loaded.
        LogConfigurator.registerErrorListener();
        LogConfigurator.setNodeName(name);
        Environment environment = InternalSettingsPreparer.prepareEnvironment(settings.build(), Map.of(), config, () -> name);
        LogConfigurator.configure(environment, true);
        return environment;
    }
}
