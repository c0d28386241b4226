import co.elastic.clients.elasticsearch.ElasticsearchClient;
import co.elastic.clients.elasticsearch._helpers.bulk.BulkIngester;
import co.elastic.clients.elasticsearch._helpers.bulk.BulkListener;
import co.elastic.clients.elasticsearch._types.Refresh;
import co.elastic.clients.elasticsearch._types.VersionType;
import co.elastic.clients.elasticsearch.core.BulkRequest;
import co.elastic.clients.elasticsearch.core.BulkResponse;
import co.elastic.clients.elasticsearch.core.bulk.BulkOperation;
import co.elastic.clients.elasticsearch.core.bulk.BulkResponseItem;
import co.elastic.clients.json.jackson.JacksonJsonpMapper;
import co.elastic.clients.transport.rest5_client.Rest5ClientTransport;
import co.elastic.clients.transport.rest5_client.low_level.Rest5Client;
import co.elastic.clients.util.BinaryData;
import co.elastic.clients.util.ContentType;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.hc.core5.http.Header;
import org.apache.hc.core5.http.message.BasicHeader;

/**
 * Writes with the BulkIngester of the official Java client.
 *
 * <p>{@code items URL INDEX} sends an item of every action, and of every error that one can have, and prints what the listener was told of each.
 * {@code workers URL INDEX COUNT ROUNDS} has so many workers each read document 1, change it and write it back, and prints what failed.
 */
public final class BulkClient {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    String url = args[1];
    String index = args[2];
    switch (args[0]) {
      case "items" -> items(url, index);
      case "workers" -> workers(url, index, Integer.parseInt(args[3]), Integer.parseInt(args[4]));
      default -> throw new IllegalArgumentException(args[0]);
    }
  }

  /** A client whose requests are of one session. */
  private static ElasticsearchClient client(String url, String session) {
    Header[] headers = {new BasicHeader("Optimist-Session", session)};
    Rest5Client rest = Rest5Client.builder(URI.create(url)).setDefaultHeaders(headers).build();
    return new ElasticsearchClient(new Rest5ClientTransport(rest, new JacksonJsonpMapper()));
  }

  private static BinaryData body(String text) {
    return BinaryData.of(text.getBytes(StandardCharsets.UTF_8), ContentType.APPLICATION_JSON);
  }

  /** What a listener is told of each item, by the number that it was added with. */
  private static final class Told implements BulkListener<Integer> {
    final TreeMap<Integer, String> items = new TreeMap<>();

    @Override
    public void beforeBulk(long id, BulkRequest request, List<Integer> numbers) {}

    @Override
    public synchronized void afterBulk(long id, BulkRequest request, List<Integer> numbers, BulkResponse response) {
      for (int i = 0; i < numbers.size(); i++) {
        BulkResponseItem it = response.items().get(i);
        String text = it.operationType().jsonValue() + " " + it.status() + " " + it.id() + " " + it.result() + " v" + it.version();
        if (it.error() != null) {
          text += " " + it.error().type() + " " + it.error().reason();
        }
        items.merge(numbers.get(i), text, (a, b) -> a + "; " + b);
      }
    }

    @Override
    public synchronized void afterBulk(long id, BulkRequest request, List<Integer> numbers, Throwable failure) {
      for (Integer n : numbers) {
        items.merge(n, failure.toString(), (a, b) -> a + "; " + b);
      }
    }
  }

  private static void items(String url, String index) throws Exception {
    List<BulkOperation> all = new ArrayList<>();
    all.add(BulkOperation.of(o -> o.index(i -> i.id("new").document(body("{\"n\":1}")))));
    all.add(BulkOperation.of(o -> o.index(i -> i.id("a").document(body("{\"n\":2,\"t\":\"as it  was \\u0061\"}")))));
    all.add(BulkOperation.of(o -> o.create(i -> i.id("made").document(body("{\"n\":3.0}")))));
    all.add(BulkOperation.of(o -> o.create(i -> i.id("b").document(body("{\"n\":4}")))));
    all.add(BulkOperation.of(o -> o.update(u -> u.id("b").retryOnConflict(2).binaryAction(body("{\"doc\":{\"m\":5}}")))));
    all.add(BulkOperation.of(o -> o.update(u -> u.id("b").binaryAction(body("{\"doc\":{\"m\":5}}")))));
    all.add(BulkOperation.of(o -> o.update(u -> u.id("absent").binaryAction(body("{\"doc\":{\"m\":6}}")))));
    all.add(BulkOperation.of(o -> o.update(u -> u.id("upserted").binaryAction(body("{\"doc\":{\"m\":7},\"doc_as_upsert\":true}")))));
    all.add(BulkOperation.of(o -> o.delete(d -> d.id("c"))));
    all.add(BulkOperation.of(o -> o.delete(d -> d.id("absent"))));
    all.add(BulkOperation.of(o -> o.index(i -> i.id("odd").document(body("{\"n\":\"no number\"}")))));
    all.add(BulkOperation.of(o -> o.index(i -> i.id("d").ifSeqNo(0L).ifPrimaryTerm(1L).document(body("{\"n\":8}")))));
    all.add(BulkOperation.of(o -> o.index(i -> i.id("d").version(3L).versionType(VersionType.External).document(body("{\"n\":9}")))));
    all.add(BulkOperation.of(o -> o.index(i -> i.id("routed").routing("r1").document(body("{\"n\":10}")))));
    all.add(BulkOperation.of(o -> o.index(i -> i.id("d").requireAlias(true).document(body("{\"n\":11}")))));
    Told told = new Told();
    try (ElasticsearchClient client = client(url, "ingester");
        BulkIngester<Integer> ingester = BulkIngester.of(b -> b.client(client).listener(told).maxOperations(1000)
            .flushInterval(1, TimeUnit.HOURS).globalSettings(s -> s.index(index).refresh(Refresh.True)))) {
      for (int i = 0; i < all.size(); i++) {
        ingester.add(all.get(i), i);
      }
    }
    told.items.forEach((n, text) -> System.out.println(n + " " + text.replace(index, "INDEX")));
  }

  private static void workers(String url, String index, int count, int rounds) throws Exception {
    List<Thread> all = new ArrayList<>();
    for (int w = 0; w < count; w++) {
      String name = "worker" + w;
      all.add(Thread.ofPlatform().start(() -> {
        try (ElasticsearchClient client = client(url, name)) {
          for (int r = 0; r < rounds; r++) {
            work(client, index, name + "-" + r);
          }
        } catch (Exception e) {
          System.out.println(name + ": " + e);
        }
      }));
    }
    for (Thread t : all) {
      t.join();
    }
  }

  private static void work(ElasticsearchClient client, String index, String entry) throws Exception {
    JsonNode read = client.get(g -> g.index(index).id("1"), JsonNode.class).source();
    ObjectNode doc = read.deepCopy();
    doc.put("n", doc.get("n").asLong() + 1);
    ((ArrayNode) doc.get("entries")).add(entry);
    byte[] text = JSON.writeValueAsBytes(doc);
    Told told = new Told();
    try (BulkIngester<Integer> ingester = BulkIngester.of(b -> b.client(client).listener(told).flushInterval(1, TimeUnit.HOURS))) {
      ingester.add(o -> o.index(i -> i.index(index).id("1").document(BinaryData.of(text, ContentType.APPLICATION_JSON))), 0);
    }
    if (told.items.size() != 1 || !told.items.get(0).startsWith("index 200")) {
      System.out.println(entry + ": " + told.items);
    }
  }
}
