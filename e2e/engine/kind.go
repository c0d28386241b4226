package engine

import "slices"

// Kind is one of the engines that the tests run on.
type Kind uint8

// The engines, each in the one version that its jars are pinned to.
const (
	OpenSearch38 Kind = iota + 1 // OpenSearch 3.8.0
	ES7                          // Elasticsearch 7.10.2
	ES9                          // Elasticsearch 9.5.3: no scripts, no by-query, no ingest processors

	secured // OpenSearch 3.4.0 with its security plugin: for StartSecured, and not among All

	broker // Kafka: no engine, but its jars are fetched as theirs are
	keeper // ZooKeeper: likewise
	client // the Java client: likewise
)

// recipe is what sets one engine apart from the others.
type recipe struct {
	name     string   // in output, names of folders and clusters
	title    string   // for people
	env      string   // the variable that names a running one
	folder   string   // below java/
	pom      string   // in that folder; empty: pom.xml
	main     string   // the class that starts it
	jvm      []string // JVM options of its own
	settings []string // settings of its own, key=value
	managers string   // the setting that names the first electable nodes of a cluster of several
	several  string   // discovery.type of such a cluster
	scripts  bool
}

func (k Kind) recipe() recipe {
	switch k {
	case OpenSearch38:
		return recipe{
			name: "opensearch", title: "OpenSearch 3.8.0", env: "OPTIMIST_E2E_OPENSEARCH",
			folder: "opensearch", main: "OpenSearchNode", scripts: true,
			jvm: []string{"--add-modules=jdk.incubator.vector"},
			// The runner's own node has no ingest role: a pipeline would be a 500.
			settings: []string{"node.roles=cluster_manager,data,ingest"},
			managers: "cluster.initial_cluster_manager_nodes", several: "zen",
		}
	case ES7:
		return recipe{
			name: "elasticsearch7", title: "Elasticsearch 7.10.2", env: "OPTIMIST_E2E_ES7",
			folder: "elasticsearch7", main: "Elasticsearch7Node", scripts: true,
			settings: []string{"node.roles=master,data,ingest"},
			managers: "cluster.initial_master_nodes", several: "zen",
		}
	case ES9:
		return recipe{
			name: "elasticsearch9", title: "Elasticsearch 9.5.3", env: "OPTIMIST_E2E_ES9",
			folder: "elasticsearch9", main: "Elasticsearch9Node",
			jvm: []string{
				"--add-modules=jdk.incubator.vector",
				// The native vector library isn't in a package registry, and netty's own checks need the server as a module.
				"-Dorg.elasticsearch.nativeaccess.enableVectorLibrary=false",
				"-Dio.netty.noUnsafe=true",
			},
			managers: "cluster.initial_master_nodes", several: "multi-node",
		}
	}
	if k == secured {
		return recipe{
			name: "opensearch-security", title: "OpenSearch 3.4.0 with its security",
			folder: "opensearch", pom: "security.xml", main: "OpenSearchNode", scripts: true,
			jvm: []string{"--add-modules=jdk.incubator.vector", "-Dplugin=org.opensearch.security.OpenSearchSecurityPlugin"},
			settings: []string{
				"node.roles=cluster_manager,data,ingest",
				"plugins.security.ssl.transport.pemcert_filepath=node.pem",
				"plugins.security.ssl.transport.pemkey_filepath=node.key",
				"plugins.security.ssl.transport.pemtrustedcas_filepath=node.pem",
				"plugins.security.ssl.transport.enforce_hostname_verification=false",
				"plugins.security.allow_default_init_securityindex=true",
				"plugins.security.restapi.roles_enabled=all_access",
				"plugins.security.audit.type=noop",
			},
		}
	}
	if k == broker {
		return recipe{name: "kafka", title: "Kafka 4.1.0", folder: "kafka", main: "KafkaNode"}
	}
	if k == keeper {
		return recipe{name: "zookeeper", title: "ZooKeeper 3.9.3", folder: "zookeeper", main: "ZooKeeperNode"}
	}
	if k == client {
		return recipe{name: "javaclient", title: "the Java client 9.5.3", folder: "javaclient", main: "BulkClient"}
	}
	return recipe{name: "unknown", title: "unknown engine"}
}

// All returns every engine, in the order in which they are reported.
func All() []Kind { return []Kind{OpenSearch38, ES7, ES9} }

// Scripted returns the engines that have Painless, by-query requests and ingest processors.
func Scripted() []Kind {
	return slices.DeleteFunc(All(), func(k Kind) bool { return !k.Scripts() })
}

// ParseKind finds an engine by the name that String gives it.
func ParseKind(name string) (Kind, bool) {
	for _, k := range All() {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// String is the engine's short name, as in the names of subtests.
func (k Kind) String() string { return k.recipe().name }

// Title is the engine's name and version, for people.
func (k Kind) Title() string { return k.recipe().title }

// Env is the variable that holds the URL of a running engine of this kind, for tests that share one.
func (k Kind) Env() string { return k.recipe().env }

// Scripts says whether the engine runs Painless, and with it _update_by_query, _delete_by_query and ingest processors.
func (k Kind) Scripts() bool { return k.recipe().scripts }
