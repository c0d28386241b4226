import org.codelibs.opensearch.runner.OpenSearchRunner;
import org.opensearch.http.HttpServerTransport;

/**
 * One OpenSearch node from jars on the class path, on the ports and with the settings of the command line. The property {@code plugin}
 * names the class of a plugin.
 */
public final class OpenSearchNode {
    private OpenSearchNode() {}

    public static void main(String[] args) throws Exception {
        Lifeline lifeline = new Lifeline(args);
        try {
            OpenSearchRunner runner = new OpenSearchRunner();
            runner.onBuild((number, settings) -> lifeline.settings().forEach(settings::put));
            runner.build(OpenSearchRunner.newConfigs()
                .basePath(lifeline.home().toString())
                .clusterName(lifeline.settings().get("cluster.name"))
                .pluginTypes(System.getProperty("plugin", ""))
                .numOfNode(1));
            // Not the runner's own getInstance: that asks the elected manager, which may be another process.
            HttpServerTransport http = runner.getNode(0).injector().getInstance(HttpServerTransport.class);
            lifeline.hold(runner, http.boundAddress().publishAddress());
        } catch (Throwable e) {
            lifeline.failed(e);
        }
    }
}
