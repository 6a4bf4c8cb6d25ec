data class QueueConfig(
    val batchSize: Int = 50,
    val workers: Int = 4,
    val maxLength: Int = 1024,
)
