import org.codelibs.opensearch.runner.OpenSearchRunner;
import org.opensearch.http.HttpServerTransport;

/** One OpenSearch node with the security plugin. What that reads at its start lies in the node's folder of configuration. */
public final class SecuredNode {
    private SecuredNode() {}

    public static void main(String[] args) throws Exception {
        Lifeline lifeline = new Lifeline(args);
        try {
            OpenSearchRunner runner = new OpenSearchRunner();
            runner.onBuild((number, settings) -> lifeline.settings().forEach(settings::put));
            runner.build(OpenSearchRunner.newConfigs()
                .basePath(lifeline.home().toString())
                .clusterName(lifeline.settings().get("cluster.name"))
                .pluginTypes("org.opensearch.security.OpenSearchSecurityPlugin")
                .numOfNode(1));
            HttpServerTransport http = runner.getNode(0).injector().getInstance(HttpServerTransport.class);
            lifeline.hold(runner, http.boundAddress().publishAddress());
        } catch (Throwable e) {
            lifeline.failed(e);
        }
    }
}
