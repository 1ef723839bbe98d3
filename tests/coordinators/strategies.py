"""Records of the internal topics, drawn at random."""

from hypothesis import strategies as st

from lamina.coordinators.records.group_records import (
    ClassicGroupKey,
    ClassicGroupValue,
    ClassicMemberMetadata,
    ClassicMemberValue,
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    ConsumerMemberValue,
    CurrentAssignmentKey,
    CurrentAssignmentValue,
    GroupRecord,
    OffsetKey,
    OffsetValue,
    PartitionMetadataKey,
    RegexKey,
    RegexValue,
    TargetAssignmentKey,
    TargetAssignmentValue,
    TargetEpochKey,
    TargetEpochValue,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
int8s = st.integers(-(2**7), 2**7 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
topic_ids = st.binary(min_size=16, max_size=16)
partitions = st.dictionaries(topic_ids, st.lists(int32s, max_size=4).map(tuple), max_size=3)
names = st.lists(texts, max_size=4).map(tuple)

plain_offsets = st.builds(OffsetValue, int64s, int32s, texts, int64s, st.none(), st.none() | topic_ids)
offsets_with_expiry = st.builds(OffsetValue, int64s, st.just(-1), texts, int64s, st.integers(0, 2**63 - 1), st.none())
classic_members = st.builds(
    ClassicMemberValue,
    texts,
    st.none() | texts,
    texts,
    texts,
    int32s,
    int32s,
    st.binary(max_size=9),
    st.binary(max_size=9),
)
classic_groups = st.builds(
    ClassicGroupValue,
    texts,
    int32s,
    st.none() | texts,
    st.none() | texts,
    int64s,
    st.lists(classic_members, max_size=3).map(tuple),
)
classic_metadata = st.builds(
    ClassicMemberMetadata, int32s, st.lists(st.tuples(texts, st.binary(max_size=9)), max_size=3).map(tuple)
)
consumer_members = st.builds(
    ConsumerMemberValue,
    st.none() | texts,
    st.none() | texts,
    texts,
    texts,
    names,
    st.none() | texts,
    int32s,
    st.none() | texts,
    st.none() | classic_metadata,
)

group_records = st.one_of(
    st.builds(GroupRecord, st.builds(OffsetKey, texts, texts, int32s), st.none() | plain_offsets | offsets_with_expiry),
    st.builds(GroupRecord, st.builds(ClassicGroupKey, texts), st.none() | classic_groups),
    st.builds(
        GroupRecord, st.builds(ConsumerGroupKey, texts), st.none() | st.builds(ConsumerGroupValue, int32s, int64s)
    ),
    st.builds(GroupRecord, st.builds(PartitionMetadataKey, texts), st.none()),
    st.builds(GroupRecord, st.builds(ConsumerMemberKey, texts, texts), st.none() | consumer_members),
    st.builds(GroupRecord, st.builds(TargetEpochKey, texts), st.none() | st.builds(TargetEpochValue, int32s)),
    st.builds(
        GroupRecord,
        st.builds(TargetAssignmentKey, texts, texts),
        st.none() | st.builds(TargetAssignmentValue, partitions),
    ),
    st.builds(
        GroupRecord,
        st.builds(CurrentAssignmentKey, texts, texts),
        st.none() | st.builds(CurrentAssignmentValue, int32s, int32s, int8s, partitions, partitions),
    ),
    st.builds(GroupRecord, st.builds(RegexKey, texts, texts), st.none() | st.builds(RegexValue, names, int64s, int64s)),
)
