import org.codelibs.elasticsearch.runner.ElasticsearchClusterRunner;
import org.elasticsearch.http.HttpServerTransport;

/** One Elasticsearch 7 node from jars on the class path, on the ports and with the settings of the command line. */
public final class Elasticsearch7Node {
    private Elasticsearch7Node() {}

    public static void main(String[] args) throws Exception {
        Lifeline lifeline = new Lifeline(args);
        try {
            ElasticsearchClusterRunner runner = new ElasticsearchClusterRunner();
            runner.onBuild((number, settings) -> lifeline.settings().forEach(settings::put));
            runner.build(ElasticsearchClusterRunner.newConfigs()
                .basePath(lifeline.home().toString())
                .clusterName(lifeline.settings().get("cluster.name"))
                .numOfNode(1));
            // Not the runner's own getInstance: that asks the elected manager, which may be another process.
            HttpServerTransport http = runner.getNode(0).injector().getInstance(HttpServerTransport.class);
            lifeline.hold(runner, http.boundAddress().publishAddress());
        } catch (Throwable e) {
            lifeline.failed(e);
        }
    }
}
