// Target assignments by the assignors of Apache Kafka's group coordinator (KIP-848).
//
// Lines of the input: topic|ID(hex)|COUNT|RACK,RACK;RACK,... of the replicas of each partition,
// member|ID|INSTANCE or -|ID,ID,...|ID:N,ID:N,...|RACK or -, assign|NAME|homogeneous or heterogeneous.
// One line comes out for each assign: MEMBER=ID:N,ID:N;MEMBER=...
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

public class AssignGroups {
    static Uuid id(String hex) {
        return new Uuid(Long.parseUnsignedLong(hex.substring(0, 16), 16), Long.parseUnsignedLong(hex.substring(16), 16));
    }

    static String hex(Uuid id) {
        return String.format("%016x%016x", id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    record Member(String instance, Set<Uuid> topics, Map<Uuid, Set<Integer>> target, String rack) { }

    // `memberIds` of a specification is the key set of this map: a sorted one
    record Spec(SortedMap<String, Member> members, SubscriptionType type) implements GroupSpec {
        public Collection<String> memberIds() { return members.keySet(); }
        public SubscriptionType subscriptionType() { return type; }
        public boolean isPartitionAssigned(Uuid topic, int partition) {
            return members.values().stream().anyMatch(m -> m.target.getOrDefault(topic, Set.of()).contains(partition));
        }
        public MemberSubscription memberSubscription(String id) {
            Member member = members.get(id);
            return new MemberSubscription() {
                public Optional<String> rackId() { return Optional.ofNullable(member.rack); }
                public Optional<String> instanceId() { return Optional.ofNullable(member.instance); }
                public Set<Uuid> subscribedTopicIds() { return member.topics; }
            };
        }
        public MemberAssignment memberAssignment(String id) {
            return new MemberAssignmentImpl(Collections.unmodifiableMap(members.get(id).target));
        }
        public boolean isPartitionAssignable(Uuid topic, int partition) { return true; }
    }

    public static void main(String[] args) {
        SortedMap<Uuid, Integer> counts = new TreeMap<>();
        Map<Uuid, String[]> racks = new HashMap<>();
        SortedMap<String, Member> members = new TreeMap<>();
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) {
            String[] parts = input.nextLine().split("\\|", -1);
            switch (parts[0]) {
                case "topic" -> {
                    counts.put(id(parts[1]), Integer.parseInt(parts[2]));
                    racks.put(id(parts[1]), parts[3].split(";"));
                }
                case "member" -> {
                    SortedSet<Uuid> topics = new TreeSet<>();
                    for (String each : parts[3].split(",")) if (!each.isEmpty()) topics.add(id(each));
                    SortedMap<Uuid, Set<Integer>> target = new TreeMap<>();
                    for (String each : parts[4].split(",")) {
                        if (each.isEmpty()) continue;
                        String[] pair = each.split(":");
                        target.computeIfAbsent(id(pair[0]), key -> new TreeSet<>()).add(Integer.parseInt(pair[1]));
                    }
                    members.put(parts[1], new Member(given(parts[2]), topics, target, given(parts[5])));
                }
                default -> {
                    System.out.println(assigned(parts[1], new Spec(members, SubscriptionType.valueOf(parts[2].toUpperCase())), counts, racks));
                    counts = new TreeMap<>();
                    racks = new HashMap<>();
                    members = new TreeMap<>();
                }
            }
        }
    }

    static String given(String text) {
        return text.equals("-") ? null : text;
    }

    static String assigned(String name, Spec spec, Map<Uuid, Integer> counts, Map<Uuid, String[]> racks) {
        ConsumerGroupPartitionAssignor assignor = name.equals("range") ? new RangeAssignor() : new UniformAssignor();
        SubscribedTopicDescriber topics = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) { return counts.getOrDefault(topic, -1); }
            public Set<String> racksForPartition(Uuid topic, int partition) { return Set.of(racks.get(topic)[partition].split(",")); }
        };
        List<String> lines = new ArrayList<>();
        new TreeMap<>(assignor.assign(spec, topics).members()).forEach((member, assignment) -> {
            List<String> partitions = new ArrayList<>();
            new TreeMap<>(assignment.partitions()).forEach((topic, indexes) ->
                new TreeSet<>(indexes).forEach(index -> partitions.add(hex(topic) + ":" + index)));
            lines.add(member + "=" + String.join(",", partitions));
        });
        return String.join(";", lines);
    }
}
