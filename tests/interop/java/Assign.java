import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own assignors, for the interop tests. Run from source: java -cp 'lib/*' Assign.java
 *
 * Reads lines of fields between '|', a list's items between ',':
 *   nodes|RACK,...                                        the brokers 0, 1, ... and their racks, '-' for none
 *   topic|NAME|NODE.NODE,...                              the replicas of each partition
 *   member|ID|INSTANCE|RACK|GENERATION|TOPIC,...|TOPIC:N,...   '-' for none; what it owned since GENERATION
 *   assign|STRATEGY                                       ends a group; prints "ID TOPIC:N,..." sorted, and "."
 *   data|STRATEGY|GENERATION|TOPIC:N,...                  prints a member's user data in hex, after that assignment
 */
public final class Assign {
    private static final List<Node> nodes = new ArrayList<>();
    private static final List<PartitionInfo> partitions = new ArrayList<>();
    private static final List<String[]> members = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        var output = new StringBuilder();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] given = line.split("\\|", -1);
            switch (given[0]) {
                case "nodes" -> nodes(items(given[1]));
                case "topic" -> topic(given[1], items(given[2]));
                case "member" -> members.add(given);
                case "assign" -> output.append(assign(given[1]));
                case "data" -> output.append(hex(userData(given[1], Integer.parseInt(given[2]), given[3]))).append('\n');
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.out.print(output);
    }

    private static void nodes(List<String> racks) {
        for (int id = 0; id < racks.size(); id++) {
            nodes.add(new Node(id, "host", 9092, none(racks.get(id))));
        }
    }

    private static void topic(String name, List<String> replicas) {
        for (int number = 0; number < replicas.size(); number++) {
            Node[] on = List.of(replicas.get(number).split("\\.")).stream()
                .map(id -> nodes.get(Integer.parseInt(id))).toArray(Node[]::new);
            partitions.add(new PartitionInfo(name, number, on[0], on, on));
        }
    }

    private static String assign(String strategy) throws Exception {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (String[] given : members) {
            subscriptions.put(given[1], subscription(strategy, given));
        }
        var cluster = new Cluster("cluster", nodes, partitions, Set.of(), Set.of());
        Map<String, Assignment> assigned =
            new TreeMap<>(assignor(strategy).assign(cluster, new GroupSubscription(subscriptions)).groupAssignment());
        var told = new StringBuilder();
        assigned.forEach((id, assignment) -> told.append(id).append(' ').append(text(assignment)).append('\n'));
        nodes.clear();
        partitions.clear();
        members.clear();
        return told.append(".\n").toString();
    }

    private static Subscription subscription(String strategy, String[] given) throws Exception {
        int generation = Integer.parseInt(given[4]);
        List<String> topics = items(given[5]);
        List<TopicPartition> owned = parse(given[6]);
        byte[] data = strategy.equals("sticky") && !owned.isEmpty() ? userData(strategy, generation, given[6]) : null;
        var subscription = new Subscription(topics, data == null ? null : java.nio.ByteBuffer.wrap(data),
            strategy.equals("sticky") ? List.of() : owned, generation, Optional.ofNullable(none(given[3])));
        subscription.setGroupInstanceId(Optional.ofNullable(none(given[2])));
        return subscription;
    }

    private static byte[] userData(String strategy, int generation, String owned) throws Exception {
        ConsumerPartitionAssignor assignor = assignor(strategy);
        assignor.onAssignment(new Assignment(parse(owned)), new ConsumerGroupMetadata("group", generation, "member", Optional.empty()));
        var buffer = assignor.subscriptionUserData(Set.of());
        byte[] bytes = new byte[buffer == null ? 0 : buffer.remaining()];
        if (buffer != null) {
            buffer.get(bytes);
        }
        return bytes;
    }

    private static ConsumerPartitionAssignor assignor(String strategy) {
        return switch (strategy) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(strategy);
        };
    }

    private static String none(String text) {
        return text.equals("-") ? null : text;
    }

    private static List<String> items(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(","));
    }

    private static List<TopicPartition> parse(String text) {
        return items(text).stream().map(item -> item.split(":"))
            .map(parts -> new TopicPartition(parts[0], Integer.parseInt(parts[1]))).toList();
    }

    private static String text(Assignment assignment) {
        return String.join(",", assignment.partitions().stream()
            .sorted(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition))
            .map(partition -> partition.topic() + ":" + partition.partition()).toList());
    }

    private static String hex(byte[] bytes) {
        var told = new StringBuilder();
        for (byte one : bytes) {
            told.append(String.format("%02x", one));
        }
        return told.toString();
    }
}
